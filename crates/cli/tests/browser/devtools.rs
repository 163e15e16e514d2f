//! A browser without a screen, told what to do over its DevTools pipe: it gets real clicks and real keys.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Debian's name for it.
const PROGRAM: &str = "chromium";
/// After this long it is ended, and the test fails: it hangs.
const SECONDS_MAX: &str = "240";
/// The pipe's ends are its descriptors 3 and 4; the shell moves them there.
const SHELL: &str = "exec timeout -k 5 \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// What pages said in their consoles: nothing, if all is well.
    complaints: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", SHELL, SECONDS_MAX, PROGRAM])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            to,
            from: BufReader::new(from),
            session: None,
            last: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// One call, and its answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "{method}: the browser has ended");
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            match message["method"].as_str() {
                None if message["id"] == self.last => {
                    assert!(message["error"].is_null(), "{method}: {message}");
                    return message["result"].clone();
                }
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                    self.complaints.push(message);
                }
                _ => {}
            }
        }
    }

    /// Opens a page of this width, light or dark, and waits until it is drawn.
    pub(crate) fn open(&mut self, page: &Path, width: u32, scheme: &str) {
        let size =
            json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}));
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", page.display())}),
        );
        self.wait_for("document.documentElement?.dataset.drawn === 'yes'");
        // What was asked to be drawn is drawn.
        self.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))");
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", ask);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        let value = self.value(expression);
        value
            .as_f64()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != true {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "never: {expression}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The pointer goes to a place of an element, in pixels from its corner; `is_click`: and clicks.
    pub(crate) fn point(&mut self, selector: &str, (x, y): (f64, f64), is_click: bool) {
        let found = format!("document.querySelector({selector:?})");
        self.value(&format!("{found}.scrollIntoView({{block: 'center'}})"));
        let left = self.number(&format!("{found}.getBoundingClientRect().left"));
        let top = self.number(&format!("{found}.getBoundingClientRect().top"));
        let kinds: &[&str] = if is_click {
            &["mouseMoved", "mousePressed", "mouseReleased"]
        } else {
            &["mouseMoved"]
        };
        for kind in kinds {
            let button = if *kind == "mouseMoved" {
                "none"
            } else {
                "left"
            };
            let event = json!({
                "type": kind, "x": left + x, "y": top + y, "button": button, "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key on an element.
    pub(crate) fn key(&mut self, selector: &str, key: &str) {
        self.value(&format!("document.querySelector({selector:?}).focus()"));
        let text = if key.len() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.call(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "text": text}),
            );
        }
    }

    /// Keeps what the screen shows.
    pub(crate) fn screenshot(&mut self, path: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let png = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(path, png).unwrap();
    }

    /// What pages said in their consoles since the last time.
    pub(crate) fn complaints(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.complaints)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The tab's session may be gone; the browser ends when its pipe does, too.
        let _ = write!(self.to, "{}\0", json!({"id": 0, "method": "Browser.close"}));
        let _ = self.to.flush();
        let _ = self.child.wait();
    }
}
