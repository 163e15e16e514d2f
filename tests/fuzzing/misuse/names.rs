//! Calls that are about tokens, frames and groups.

use std::ptr::null;

use capi::pl_status::PL_INVALID;
use capi::{
    pl_frame_begin, pl_frame_end, pl_frame_remaining, pl_group_create, pl_group_destroy, pl_status,
    pl_token_cancel, pl_token_create, pl_token_destroy, pl_token_is_cancelled,
};

use super::model::{NamedState, TokenState};
use super::{Bytes, MayRun, Program};

impl Program {
    /// A token's owner, if it is known.
    fn owner_of(&self, token: Option<usize>) -> Option<usize> {
        let state = token.map(|token| &self.model.tokens[token]);
        state
            .filter(|token| token.is_known)
            .map(|token| token.system)
    }

    pub(super) fn make_token(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut out) = (self.system(bytes), 0);
        let (parent, place) = match bytes.next() % 2 {
            0 => (0, None),
            _ => Program::pick(&self.tokens, bytes),
        };
        let mut wrong = self.wrong_system(system);
        if parent != 0 {
            wrong.extend(self.wrong_number(system, self.owner_of(place)));
        }
        // SAFETY: the job system is null or was made.
        let status = unsafe { pl_token_create(self.systems[system], parent, &mut out) };
        if self.judge_plain(status, &wrong) {
            self.tokens.push(out);
            self.model.tokens.push(TokenState {
                system,
                parent: place,
                is_cancelled: false,
                is_known: true,
            });
        }
    }

    /// Asks a token, and cancels it or destroys it.
    pub(super) fn end_token(&mut self, bytes: &mut Bytes<'_>) {
        let (system, how, mut is) = (self.system(bytes), bytes.next(), 7);
        let (token, place) = Program::pick(&self.tokens, bytes);
        let mut wrong = self.wrong_system(system);
        match token {
            0 if wrong.is_empty() => wrong.push(PL_INVALID),
            _ => wrong.extend(self.wrong_number(system, self.owner_of(place))),
        }
        let raw = self.systems[system];
        // SAFETY: as above.
        let (asked, status) = unsafe {
            let asked = pl_token_is_cancelled(raw, token, &mut is);
            let status = match how % 2 {
                0 => pl_token_cancel(raw, token),
                _ => pl_token_destroy(raw, token),
            };
            (asked, status)
        };
        self.judge_plain(asked, &wrong);
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), place) {
            assert_eq!(is, i32::from(self.model.is_cancelled(place)));
            match how % 2 {
                0 => self.model.tokens[place].is_cancelled = true,
                _ => self.model.tokens[place].is_known = false,
            }
            self.follow(&MayRun::Nothing);
        }
    }

    pub(super) fn make_frame(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut out) = (self.system(bytes), 0);
        let budget = bytes.next() as u64 * 1000;
        // SAFETY: the job system is null or was made; null is a name.
        let status = unsafe { pl_frame_begin(self.systems[system], null(), budget, &mut out) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            self.frames.push(out);
            self.model.frames.push(NamedState {
                system,
                is_known: true,
            });
        }
    }

    /// A frame, with its place, for a call that needs one; what is wrong with it is added.
    pub(super) fn frame(
        &self,
        system: usize,
        bytes: &mut Bytes<'_>,
        wrong: &mut Vec<pl_status>,
    ) -> (u64, Option<usize>) {
        let (frame, place) = Program::pick(&self.frames, bytes);
        let known = place
            .map(|at| &self.model.frames[at])
            .filter(|frame| frame.is_known);
        wrong.extend(self.wrong_number(system, known.map(|frame| frame.system)));
        (frame, place)
    }

    pub(super) fn end_frame(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut left) = (self.system(bytes), 0);
        let mut wrong = self.wrong_system(system);
        let (frame, place) = self.frame(system, bytes, &mut wrong);
        let raw = self.systems[system];
        // SAFETY: as above.
        let (asked, status) = unsafe {
            let asked = pl_frame_remaining(raw, frame, &mut left);
            (asked, pl_frame_end(raw, frame))
        };
        self.judge_plain(asked, &wrong);
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), place) {
            self.model.frames[place].is_known = false;
        }
    }

    pub(super) fn make_group(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut out) = (self.system(bytes), 0);
        // SAFETY: as above.
        let status = unsafe { pl_group_create(self.systems[system], null(), &mut out) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            self.groups.push(out);
            self.model.groups.push(NamedState {
                system,
                is_known: true,
            });
        }
    }

    pub(super) fn end_group(&mut self, bytes: &mut Bytes<'_>) {
        let system = self.system(bytes);
        let (group, place) = Program::pick(&self.groups, bytes);
        let known = place
            .map(|at| &self.model.groups[at])
            .filter(|group| group.is_known);
        let mut wrong = self.wrong_system(system);
        match group {
            0 if wrong.is_empty() => wrong.push(PL_INVALID),
            _ => wrong.extend(self.wrong_number(system, known.map(|group| group.system))),
        }
        // SAFETY: as above.
        let status = unsafe { pl_group_destroy(self.systems[system], group) };
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), place) {
            self.model.groups[place].is_known = false;
        }
    }
}
