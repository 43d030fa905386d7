//! Tool calls of a scope: those that are open, and those of the open turn that are over, for rules
//! that look at them. None of it outlives the process: a turn that was open when it died has ended.

use std::collections::{BTreeMap, VecDeque};

use super::facts::too_many;
use super::record::Serial;
use super::refusal::Refusal;
use super::value::Value;

/// Tool calls of a scope that are open at most.
const OPEN_MAX: usize = 10_000;
/// Finished calls of a turn that are kept at most; the oldest give way.
pub const FINISHED_MAX: usize = 1_000;
/// What is kept of the inputs of a scope's calls, in bytes; the oldest finished ones give way.
pub const INPUT_BYTES_MAX: usize = 4 << 20;

/// What the model passed to a tool.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CallInput {
    /// The input as data; a text where it was too large and is cut.
    pub value: Value,
    /// The texts in which a pattern is looked for: the whole input as one text, and every string in
    /// it by itself.
    pub texts: Vec<String>,
}

impl CallInput {
    /// What it takes, in bytes: its texts, and the data that they were made of.
    fn bytes(&self) -> usize {
        2 * self.texts.iter().map(|text| text.len() + size_of::<String>()).sum::<usize>()
    }
}

/// A tool call that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedCall {
    /// When it ended, among all that happened.
    pub serial: Serial,
    /// The tool's name.
    pub name: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// What the model passed, where that is known.
    pub input: Option<CallInput>,
}

/// The calls of a scope.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    open: BTreeMap<String, Option<CallInput>>,
    finished: VecDeque<FinishedCall>,
    /// Bytes of all inputs.
    bytes: usize,
}

impl Calls {
    /// A call began. Begun twice it is one call with the later input.
    pub fn begin(&mut self, call: &str, input: Option<CallInput>) -> Result<(), Refusal> {
        if !self.open.contains_key(call) && self.open.len() >= OPEN_MAX {
            return Err(too_many(
                "a scope's open tool calls",
                OPEN_MAX,
                "send tool/end for those that ended",
            ));
        }
        let former = self.open.remove(call).flatten();
        self.bytes -= former.as_ref().map_or(0, CallInput::bytes);
        let input = input.filter(|input| self.make_room(input.bytes()));
        self.bytes += input.as_ref().map_or(0, CallInput::bytes);
        self.open.insert(call.to_owned(), input);
        Ok(())
    }

    /// A call ended, begun or not. It is kept as one of the turn's if a turn `is_open`.
    pub fn end(&mut self, call: &str, name: &str, ok: bool, serial: Serial, is_open: bool) {
        let input = self.open.remove(call).flatten();
        if !is_open {
            self.bytes -= input.as_ref().map_or(0, CallInput::bytes);
            return;
        }
        if self.finished.len() >= FINISHED_MAX {
            self.drop_oldest();
        }
        self.finished.push_back(FinishedCall { serial, name: name.to_owned(), ok, input });
    }

    /// The ids of those that are open, in order.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    /// Those of the open turn that are over, in the order in which they ended.
    pub fn finished(&self) -> impl ExactSizeIterator<Item = &FinishedCall> + DoubleEndedIterator {
        self.finished.iter()
    }

    /// Finished calls give way until so many bytes more can be kept. Says whether they can.
    fn make_room(&mut self, more: usize) -> bool {
        while self.bytes + more > INPUT_BYTES_MAX && !self.finished.is_empty() {
            self.drop_oldest();
        }
        self.bytes + more <= INPUT_BYTES_MAX
    }

    fn drop_oldest(&mut self) {
        let oldest = self.finished.pop_front().and_then(|oldest| oldest.input);
        self.bytes -= oldest.as_ref().map_or(0, CallInput::bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: usize) -> Option<CallInput> {
        Some(CallInput { value: Value::Null, texts: vec!["x".repeat(bytes)] })
    }

    #[test]
    fn what_is_kept_of_calls_is_bounded() {
        let mut calls = Calls::default();
        for number in 0..2 * FINISHED_MAX as u64 {
            calls.begin("c", input(1 << 12)).expect("room");
            calls.end("c", "Bash", true, number, true);
            assert!(calls.bytes <= INPUT_BYTES_MAX);
        }
        let newest = calls.finished().next_back().expect("a call");
        assert_eq!((newest.serial, calls.finished().len()), (2 * FINISHED_MAX as u64 - 1, 509));

        // Open calls alone can take all of it; another one then keeps no input.
        for number in 0..600 {
            calls.begin(&number.to_string(), input(1 << 12)).expect("room");
        }
        calls.end("599", "Bash", true, 0, true);
        assert_eq!(calls.finished().next().expect("a call").input, None);

        for number in 0..600 {
            calls.end(&number.to_string(), "Bash", true, 0, false);
        }
        assert_eq!((calls.bytes, calls.open().len()), (0, 0));
    }
}
