//! Jobs as scopes of `puffin`, which its viewers show frame by frame and thread by thread.
//!
//! The frame's view here is what a viewer gets; the program prints it.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use paceline::{Builder, JobMoment, Label};
use puffin::{
    FrameView, GlobalFrameView, GlobalProfiler, ProfilerScope, Reader, ScopeDetails, ScopeId,
    Stream,
};

/// What puffin calls each label.
static SCOPES: LazyLock<Mutex<HashMap<Label, ScopeId>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The scopes of the bodies that this thread is in; none of a body that began while puffin was off.
    static OPEN: RefCell<Vec<Option<ProfilerScope>>> = const { RefCell::new(Vec::new()) };
}

/// The hook.
fn scopes(moment: JobMoment, label: &Label, _frame: Option<u64>) {
    match moment {
        JobMoment::Begin => {
            let scope = puffin::are_scopes_on().then(|| ProfilerScope::new(scope_of(label), ""));
            OPEN.with_borrow_mut(|open| open.push(scope));
        }
        JobMoment::End => drop(OPEN.with_borrow_mut(Vec::pop)),
    }
}

fn scope_of(label: &Label) -> ScopeId {
    let mut scopes = SCOPES.lock().expect("puffin does not panic");
    *scopes.entry(*label).or_insert_with(|| {
        let details = ScopeDetails::from_scope_name(label.name)
            .with_file(puffin::short_file_name(label.site.file()))
            .with_line_nr(label.site.line());
        GlobalProfiler::lock().register_user_scopes(&[details])[0]
    })
}

/// The names of the scopes from here on, with those inside of them after a colon.
fn names(view: &FrameView, stream: &Stream, from: u64, found: &mut Vec<String>, above: &str) {
    let reader = Reader::with_offset(stream, from).expect("puffin wrote it");
    for scope in reader.read_top_scopes().expect("puffin wrote it") {
        let details = view.scope_collection().fetch_by_id(&scope.id);
        let name = format!("{above}{}", details.expect("it was registered").name());
        if scope.child_begin_position < scope.child_end_position {
            let inside = format!("{name}: ");
            names(view, stream, scope.child_begin_position, found, &inside);
        }
        found.push(name);
    }
}

fn main() {
    puffin::set_scopes_on(true);
    let view = GlobalFrameView::default();
    let js = Builder::new()
        .on_job(scopes)
        .build()
        .expect("the settings are the defaults");
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| {
            puffin::profile_scope!("solve");
        });
        let animation = frame.job("animation").schedule(|_| ());
        js.wait(
            frame
                .job("draw")
                .after_all([physics, animation])
                .schedule(|_| ()),
        );
        // Each body that has ended by now is in the frame.
        GlobalProfiler::lock().new_frame();
    }

    let view = view.lock();
    for frame in view.recent_frames() {
        let Ok(unpacked) = frame.unpacked();
        let mut found = Vec::new();
        for stream in unpacked.thread_streams.values() {
            names(&view, &stream.stream, 0, &mut found, "");
        }
        found.sort();
        println!("frame {}: {}", frame.frame_index(), found.join(", "));
    }
}
