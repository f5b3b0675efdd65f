//! What a program was doing when it made each allocation: building the model, the forward pass, the
//! backward pass, the optimizer's step, or none of these.
//!
//! The stack decides, in both languages; our own recorder's mark `phase=` where the stack does not.
//! Python never runs on the threads of autograd's engine: in a recording of Python stacks, an
//! allocation without a stack, or with one that begins elsewhere than the program, was made there.
//!
//! # Cost
//!
//! About 1 µs a frame, once; then 1 ns for each frame of each stack, and 3 ns an allocation.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::facts::{Facts, mark};
use super::frames::is_python;
use super::modules::{is_module_call, is_optimizer};
use crate::lifetimes::BEFORE;
use crate::snapshot::stack_text::StackTexts;

/// What the frames of a stack show; bits.
pub mod feature {
    /// Autograd's engine runs.
    pub const BACKWARD: u16 = 1;
    /// An optimizer's step.
    pub const OPTIMIZER: u16 = 1 << 1;
    /// An `nn.Module` is called.
    pub const MODULE: u16 = 1 << 2;
    /// A model is built, moved or loaded.
    pub const CONSTRUCT: u16 = 1 << 3;
    /// A checkpointed part of the forward pass is computed again.
    pub const RECOMPUTE: u16 = 1 << 4;
    /// Scratch memory of cuBLAS, cuDNN, ….
    pub const WORKSPACE: u16 = 1 << 5;
    /// Communication between processes.
    pub const COMMUNICATION: u16 = 1 << 6;
    /// A data loader.
    pub const DATA: u16 = 1 << 7;
    /// A tensor is made of nothing: random numbers, zeros, a list.
    pub const FACTORY: u16 = 1 << 8;
    /// Has a Python frame.
    pub const PYTHON: u16 = 1 << 9;
    /// Has a C++ frame.
    pub const CPP: u16 = 1 << 10;
    /// A gradient is stored in its parameter.
    pub const ACCUMULATE: u16 = 1 << 11;
    /// An `__init__` of any class.
    pub const INIT: u16 = 1 << 12;
    /// Gradients are scaled or clipped.
    pub const GRADIENT_TOOLS: u16 = 1 << 13;
}

/// What the program was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Phase {
    /// Not known, or code of the user's outside of the others.
    #[default]
    Outside,
    /// Before the recording.
    Before,
    /// A model is built, moved or loaded.
    Construct,
    /// An `nn.Module` is called.
    Forward,
    /// Autograd's engine runs.
    Backward,
    /// An optimizer's step.
    Optimizer,
}

impl Phase {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Before => "before",
            Self::Construct => "construct",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
        }
    }
}

/// Consecutive allocations of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// What the program was doing.
    pub phase: Phase,
    /// The event that made the first of them.
    pub start: i64,
    /// The event that made the first one after them; the number of events if there is none.
    pub end: i64,
}

/// The phases of a trace.
#[derive(Debug, Default, Clone)]
pub struct Phases {
    /// See [`feature`]; by stack.
    pub features: Vec<u16>,
    /// By allocation.
    pub of_allocation: Vec<Phase>,
    /// In the order of events.
    pub runs: Vec<Run>,
    /// Whether the stacks show phases at all.
    pub has_stacks: bool,
    /// Whether stacks have Python frames.
    pub has_python: bool,
    /// Whether stacks have C++ frames.
    pub has_cpp: bool,
}

impl Phases {
    /// Those of a device.
    #[must_use]
    pub fn of(facts: &Facts<'_>) -> Self {
        let all = &facts.lives.allocations;
        let mut features = stack_features(facts.texts);
        let (mut has_python, mut has_cpp) = (false, false);
        let mut seen = vec![false; features.len()];
        for (&stack, &event) in all.stack.iter().zip(&all.alloc_event) {
            if event != BEFORE && !std::mem::replace(&mut seen[stack as usize], true) {
                has_python |= features[stack as usize] & feature::PYTHON != 0;
                has_cpp |= features[stack as usize] & feature::CPP != 0;
            }
        }
        let engine_has_no_stack = has_python && !has_cpp;
        if engine_has_no_stack {
            mark_engine_stacks(facts.texts, &mut features);
        }
        let of_mark = facts.tags.map(|extras| match mark(extras?, "phase")? {
            "forward" => Some(Phase::Forward),
            "backward" => Some(Phase::Backward),
            "optimizer" => Some(Phase::Optimizer),
            _ => None,
        });
        let of_stack: Vec<Phase> = features.iter().map(|&one| phase(one)).collect();
        let of_allocation: Vec<Phase> = (0..all.len())
            .map(|which| {
                if all.alloc_event[which] == BEFORE {
                    return Phase::Before;
                }
                let stack = all.stack[which] as usize;
                let marked = of_mark[facts.tags.of_allocation[which] as usize];
                match (of_stack[stack], marked) {
                    (Phase::Outside, Some(marked)) => marked,
                    (Phase::Outside, None) if stack == 0 && engine_has_no_stack => Phase::Backward,
                    (phase, _) => phase,
                }
            })
            .collect();
        let end = facts.lives.totals.len() as i64;
        let runs = runs(&of_allocation, &all.alloc_event, end);
        let is_known = |phase: &Phase| !matches!(phase, Phase::Outside | Phase::Before);
        let has_stacks = of_allocation.iter().any(is_known);
        Self { features, of_allocation, runs, has_stacks, has_python, has_cpp }
    }

    /// The stretches in which autograd's engine runs.
    pub fn backward_runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().copied().filter(|run| run.phase == Phase::Backward)
    }
}

/// Groups consecutive allocations of one phase.
fn runs(phases: &[Phase], events: &[i64], end: i64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (&phase, &start) in phases.iter().zip(events) {
        if phase == Phase::Before || runs.last().is_some_and(|last| last.phase == phase) {
            continue;
        }
        if let Some(last) = runs.last_mut() {
            last.end = start;
        }
        runs.push(Run { phase, start, end });
    }
    runs
}

fn phase(features: u16) -> Phase {
    let has = |bits: u16| features & bits != 0;
    if has(feature::OPTIMIZER) {
        Phase::Optimizer
    } else if has(feature::BACKWARD) {
        Phase::Backward
    } else if has(feature::MODULE) {
        Phase::Forward
    } else if has(feature::CONSTRUCT) {
        Phase::Construct
    } else {
        Phase::Outside
    }
}

/// Of Python stacks alone: those that begin elsewhere than the program are the engine's.
fn mark_engine_stacks(texts: &StackTexts, features: &mut [u16]) {
    let outermost = |stack: usize| texts.stack(stack as u32).last().copied();
    let function = |frame: u32| {
        let (name, filename, _) = texts.frame(frame);
        (name, filename)
    };
    let is_main = feature::OPTIMIZER | feature::CONSTRUCT | feature::MODULE;
    let mut roots: HashSet<(&str, &str), RandomState> = HashSet::default();
    for (stack, &features) in features.iter().enumerate() {
        if features & is_main != 0 && features & feature::RECOMPUTE == 0 {
            roots.extend(outermost(stack).map(function));
        }
    }
    for (stack, features) in features.iter_mut().enumerate() {
        if let Some((name, filename)) = outermost(stack).map(function)
            && name != "<module>"
            && !roots.is_empty()
            && !roots.contains(&(name, filename))
        {
            *features |= feature::BACKWARD;
        }
    }
}

/// What the frames of each stack show.
fn stack_features(texts: &StackTexts) -> Vec<u16> {
    let of_frame: Vec<u16> = (0..texts.frames().len() as u32)
        .map(|id| {
            let (name, filename, _) = texts.frame(id);
            if is_python(filename) || filename.starts_with('<') {
                python_features(name, filename) | feature::PYTHON
            } else {
                cpp_features(name) | feature::CPP
            }
        })
        .collect();
    let stacks = texts.stacks();
    stacks.map(|frames| frames.iter().fold(0, |all, &id| all | of_frame[id as usize])).collect()
}

fn python_features(name: &str, filename: &str) -> u16 {
    let path = filename.replace('\\', "/");
    let mut found = 0;
    if is_optimizer(name, filename) {
        found |= feature::OPTIMIZER;
    }
    if is_module_call(name, filename) {
        found |= feature::MODULE;
    }
    let is_autograd =
        path.ends_with("torch/autograd/__init__.py") || path.ends_with("torch/autograd/graph.py");
    if is_autograd && matches!(name, "backward" | "grad" | "_engine_run_backward" | "_make_grads") {
        found |= feature::BACKWARD;
    }
    if path.ends_with("torch/utils/checkpoint.py")
        && matches!(name, "unpack_hook" | "recompute_fn" | "backward")
    {
        found |= feature::BACKWARD | feature::RECOMPUTE;
    }
    if path.contains("torch/nn/") {
        let in_module = path.ends_with("torch/nn/modules/module.py")
            && matches!(
                name,
                "_apply"
                    | "to"
                    | "cuda"
                    | "half"
                    | "float"
                    | "double"
                    | "bfloat16"
                    | "type"
                    | "to_empty"
                    | "load_state_dict"
                    | "_load_from_state_dict"
                    | "load"
                    | "convert"
            );
        let is_made = name == "__init__"
            || name.starts_with("reset_parameters")
            || name == "_reset_parameters";
        if in_module
            || path.ends_with("torch/nn/init.py")
            || path.ends_with("torch/nn/parameter.py")
            || (path.contains("torch/nn/modules/") && is_made)
        {
            found |= feature::CONSTRUCT;
        }
        if path.ends_with("clip_grad.py") {
            found |= feature::GRADIENT_TOOLS;
        }
    }
    if path.contains("torch/amp/grad_scaler") || path.contains("torch/cuda/amp/grad_scaler") {
        found |= feature::GRADIENT_TOOLS;
    }
    if matches!(name, "from_pretrained" | "load_state_dict" | "load_checkpoint") {
        found |= feature::CONSTRUCT;
    }
    if name == "__init__" {
        found |= feature::INIT;
    }
    if path.contains("torch/utils/data/") {
        found |= feature::DATA;
    }
    if path.contains("torch/distributed/") && !path.contains("/optim/") {
        found |= feature::COMMUNICATION;
    }
    found
}

/// C++ functions that make a tensor of nothing.
const FACTORIES: [&str; 12] = [
    "THPVariable_rand",
    "THPVariable_zeros",
    "THPVariable_ones",
    "THPVariable_full",
    "THPVariable_arange",
    "THPVariable_tensor",
    "THPVariable_eye",
    "THPVariable_linspace",
    "at::_ops::rand",
    "at::_ops::arange",
    "at::_ops::normal",
    "torch::utils::tensor_ctor",
];

fn cpp_features(name: &str) -> u16 {
    let has = |part: &str| name.contains(part);
    let mut found = 0;
    if has("torch::autograd::Engine::") || has("torch::autograd::python::PythonEngine::") {
        found |= feature::BACKWARD;
    }
    if has("AccumulateGrad") {
        found |= feature::BACKWARD | feature::ACCUMULATE;
    }
    if has("_foreach_")
        || has("foreach_tensor")
        || has("_fused_adam")
        || has("_fused_sgd")
        || has("_fused_adagrad")
        || has("fused_adam")
        || has("fused_sgd")
    {
        found |= feature::OPTIMIZER;
    }
    let lower = name.to_ascii_lowercase();
    if lower.contains("workspace") || has("at::cuda::blas::") && lower.contains("alloc") {
        found |= feature::WORKSPACE;
    }
    if has("c10d::") || has("ProcessGroup") || has("nccl") {
        found |= feature::COMMUNICATION;
    }
    if FACTORIES.iter().any(|factory| has(factory)) {
        found |= feature::FACTORY;
    }
    found
}
