//! The program that a recording was made for, and the recorder that waited for it.

use std::collections::HashSet;

use event::Task;

use crate::timeline::Timeline;

/// The threads of both, as far as the recording says which those are.
#[derive(Debug, Default)]
pub(super) struct RecordedProgram {
    recorder: HashSet<Task>,
    program: HashSet<Task>,
}

impl RecordedProgram {
    pub(super) fn new(timeline: &Timeline) -> RecordedProgram {
        let origin = &timeline.recording().origin;
        let mut found = RecordedProgram::default();
        if origin.recorder.is_none() && origin.recorded.is_empty() {
            return found;
        }
        let processes = &timeline.recording().processes;
        for task in timeline.threads() {
            let process = timeline.process(task).and_then(|at| processes.get(at));
            let numbers = [process.and_then(|process| process.pid), timeline.tid(task)];
            let mut numbers = numbers.into_iter().flatten();
            // A process has left the recorder as soon as it is of the program.
            if numbers
                .clone()
                .any(|number| origin.recorded.contains(&number))
            {
                found.program.insert(task);
            } else if numbers.any(|number| origin.recorder == Some(number)) {
                found.recorder.insert(task);
            }
        }
        found
    }

    /// Whether a thread is the recorder's, whose waits are for the program to end.
    pub(super) fn is_recorder(&self, task: Task) -> bool {
        self.recorder.contains(&task)
    }

    /// Whether a thread is of the program, and so was started while it was recorded.
    pub(super) fn is_program(&self, task: Task) -> bool {
        self.program.contains(&task)
    }

    /// Whether the recording was made for another program than a thread's.
    pub(super) fn is_other(&self, task: Task) -> bool {
        !self.program.is_empty() && !self.is_program(task)
    }
}
