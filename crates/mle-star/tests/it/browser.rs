//! Chromium without a window, driven through its pipe.
#![expect(clippy::indexing_slicing, reason = "what is absent in JSON is null")]

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Where Debian and others put it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    unread: Vec<u8>,
    session: Option<String>,
    asked: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// A browser, if one is installed.
    pub(crate) fn start() -> Option<Self> {
        let name = NAMES.iter().find(|name| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|it| it.status.success())
        })?;
        let profile = tempfile::tempdir().unwrap();
        // It speaks on descriptors 3 and 4, which only a shell can give it without unsafe code.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#, name])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            input,
            output,
            unread: Vec::new(),
            session: None,
            asked: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let page = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", &target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its result.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn read(&mut self) -> Value {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == 0) {
                let message: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(message.strip_suffix(b"\0").unwrap()).unwrap();
            }
            let mut bytes = vec![0; 1 << 16];
            let count = self.output.read(&mut bytes).unwrap();
            assert_ne!(count, 0, "the browser has ended");
            self.unread.extend(bytes.into_iter().take(count));
        }
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.ask("Page.navigate", &json!({ "url": address }));
    }

    /// Looks at pages from now on in a window with so many columns of pixels, in `light` or `dark`.
    pub(crate) fn look(&mut self, width: u32, scheme: &str) {
        let window = json!({ "width": width, "height": 900, "deviceScaleFactor": 1,
            "mobile": width < 500 });
        self.ask("Emulation.setDeviceMetricsOverride", &window);
        let scheme = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.ask("Emulation.setEmulatedMedia", &json!({ "features": [scheme] }));
    }

    /// What an expression comes to in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let how = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.ask("Runtime.evaluate", &how);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("!!({expression})")) != true {
            if began.elapsed() > Duration::from_secs(90) {
                let page = self.eval("document.body.innerText");
                panic!("not in 90 seconds: {expression}\n{page}\n{:?}", self.complaints());
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Tab" => 9,
            other => panic!("no code for {other}"),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code });
            self.ask("Input.dispatchKeyEvent", &event);
        }
    }

    /// Errors that the page caused, and what the browser refused it.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let is_complaint = |it: &&Value| {
            it["method"] == "Runtime.exceptionThrown"
                || it["params"]["entry"]["level"] == "error"
                || it["params"]["type"] == "error"
        };
        self.events.iter().filter(is_complaint).map(|it| it["params"].to_string()).collect()
    }

    /// Every address that was asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|it| it["method"] == "Network.requestWillBeSent");
        asked.filter_map(|it| it["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
