//! The module that was running when an allocation was made.
//!
//! In this order: our own recorder's mark `module=layers.3.attn`; the calls of `nn.Module` in the
//! stack, as the line that called the module; the node of a backward pass with its forward stack; and
//! the optimizer.

use super::facts::{Facts, mark};
use super::frames::{autograd_node, basename, short_text};
use super::keys::{Keys, Names};
use crate::snapshot::stack_text::StackTexts;

/// A group for each module.
#[must_use]
pub fn keys(facts: &Facts<'_>) -> Keys {
    let all = &facts.lives.allocations;
    let mut names = Names::default();
    let none = names.id("outside of modules".to_owned());
    let unknown = names.id(super::frames::NO_STACK.to_owned());
    let of_tag: Vec<Option<u32>> = facts
        .tags
        .map(|extras| {
            let extras = extras?;
            let module = mark(extras, "module").map(str::to_owned);
            module.or_else(|| forward_module(&extras.forward_frames))
        })
        .into_iter()
        .map(|name| name.map(|name| names.id(name)))
        .collect();
    let has_marks = of_tag.iter().any(Option::is_some);
    let of_stack: Vec<u32> = (0..facts.texts.len() as u32)
        .map(|stack| match facts.texts.stack(stack) {
            [] => unknown,
            _ => of_frames(facts.texts, stack).map_or(none, |name| names.id(name)),
        })
        .collect();
    let has_stacks = of_stack.iter().any(|&id| id != unknown);
    let id = |which: usize| {
        of_tag[facts.tags.of_allocation[which] as usize]
            .unwrap_or_else(|| of_stack.get(all.stack[which] as usize).copied().unwrap_or(unknown))
    };
    let ids = (0..all.len()).map(id).collect();
    let missing = match (has_marks, has_stacks) {
        (true, _) => None,
        (false, true) => Some(
            "module names were not recorded: modules are shown by the lines of their forward calls",
        ),
        (false, false) => Some("neither module names nor stacks were recorded"),
    };
    Keys::new(ids, names.into_list(), missing)
}

/// Whether a frame calls an `nn.Module`.
pub(super) fn is_module_call(name: &str, filename: &str) -> bool {
    matches!(name, "_call_impl" | "_wrapped_call_impl" | "_slow_forward")
        && basename(filename) == "module.py"
}

/// The modules that a stack passes through, the outermost first, or the node of a backward pass.
fn of_frames(texts: &StackTexts, stack: u32) -> Option<String> {
    let mut path: Vec<String> = Vec::new();
    let mut is_called = false;
    for &id in texts.stack(stack).iter().rev() {
        let (name, filename, line) = texts.frame(id);
        if is_module_call(name, filename) {
            is_called = true;
        } else if is_called && super::frames::is_python(filename) {
            is_called = false;
            path.push(if is_torch_layer(filename) {
                basename(filename).trim_end_matches(".py").to_owned()
            } else {
                format!("{}:{line}", basename(filename))
            });
        } else if path.is_empty() && is_optimizer(name, filename) {
            return Some("optimizer".to_owned());
        }
    }
    if path.is_empty() {
        let nodes = texts.stack(stack).iter();
        let mut nodes = nodes.filter_map(|&id| autograd_node(texts.frame(id).0));
        return nodes.next().map(|node| format!("backward: {node}"));
    }
    // What repeats is recursion, or a container that passes on.
    path.dedup();
    Some(path.join(" > "))
}

fn is_torch_layer(filename: &str) -> bool {
    filename.replace('\\', "/").contains("torch/nn/modules/")
}

/// Whether a frame is an optimizer's step.
pub(super) fn is_optimizer(name: &str, filename: &str) -> bool {
    let path = filename.replace('\\', "/");
    let in_torch = path.contains("torch/optim/")
        && !path.ends_with("lr_scheduler.py")
        && !matches!(name, "zero_grad" | "__init__" | "add_param_group" | "load_state_dict");
    in_torch || (name == "step" && path.to_lowercase().contains("optim"))
}

/// The innermost line of Python in a forward stack, which is a list of texts.
fn forward_module(lines: &[String]) -> Option<String> {
    let own = lines.iter().find(|line| line.contains(".py") && !line.contains("torch/"))?;
    let text = own.trim();
    Some(format!("backward of {}", short_forward(text)))
}

/// `File "/a/model.py", line 7, in forward` or `/a/model.py:7:forward` as `model.py:7 forward`.
fn short_forward(text: &str) -> String {
    let parsed = || {
        let (file, rest) = text.split_once("File \"")?.1.split_once("\", line ")?;
        let (line, name) = rest.split_once(", in ")?;
        Some(short_text(name.trim(), file, line.trim().parse().ok()?))
    };
    parsed().unwrap_or_else(|| basename(text).to_owned())
}
