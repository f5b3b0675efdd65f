from snapviewer.cli import convert_main

raise SystemExit(convert_main())
