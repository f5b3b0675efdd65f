try:
    from snapviewer.cli import gui_main
except ModuleNotFoundError as error:
    raise SystemExit(
        f"{error}: run `make run` once and use .venv/bin/python, or `pip install .`"
    ) from None
raise SystemExit(gui_main())
