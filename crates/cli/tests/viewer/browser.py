"""A headless Chromium that is driven over a pipe (Chrome DevTools protocol), with the standard library alone."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 120.0
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def find():
    """The browser, if one is installed."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="lockstep-browser-")
        theirs_in, self.out = os.pipe()
        self.inside, theirs_out = os.pipe()

        def place_pipes():
            # Above the places that they go to, so that none is overwritten by the other.
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.bytes, self.number, self.session, self.problems = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.ask(f"{domain}.enable")

    def close(self):
        """Ends it and removes what it left."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, **parameters):
        """Calls a method and waits for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(deadline, method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, deadline, method):
        """The next message; exceptions and refusals of the page are kept."""
        while b"\0" not in self.bytes:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.inside], [], [], left)[0]:
                raise AssertionError(f"no answer to {method} within {PATIENCE} s")
            more = os.read(self.inside, 1 << 20)
            if not more:
                raise AssertionError("the browser ended")
            self.bytes += more
        text, self.bytes = self.bytes.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", text.decode()))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.problems.append(message["params"]["entry"]["text"])
        return message

    def evaluate(self, expression):
        """The value of an expression on the page."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        """Waits until an expression is true, and gives its value."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"not within {PATIENCE} s: {expression}; problems: {self.problems}")

    def open(self, url, width=1280, height=800, dark=False):
        """Opens a page in a window of this size."""
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && document.body.dataset.ready === 'yes'")

    def click(self, selector):
        """Clicks into the middle of an element, as a mouse does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{found} !== null")
        box = self.evaluate(f"(() => {{ const one = {found}; one.scrollIntoView({{block: 'center'}}); "
                            "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"]:
            count = 0 if kind == "mouseMoved" else 1
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=count)

    def drag(self, selector, begin, end):
        """Drags from one part of an element's width to another."""
        found = f"document.querySelector({json.dumps(selector)})"
        box = self.evaluate(f"(() => {{ const one = {found}; one.scrollIntoView({{block: 'center'}}); "
                            "const box = one.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()")
        left, top, width, height = box
        steps = [("mouseMoved", begin), ("mousePressed", begin), ("mouseMoved", (begin + end) / 2), ("mouseMoved", end), ("mouseReleased", end)]
        for kind, part in steps:
            button = "none" if kind == "mouseMoved" and part == begin else "left"
            self.ask("Input.dispatchMouseEvent", type=kind, x=left + width * part, y=top + height / 2, button=button,
                     buttons=0 if button == "none" else 1, clickCount=1)

    def key(self, key, code=None, text=None):
        """Presses a key."""
        described = {"key": key, "code": code or key}
        described.update({"Tab": {"windowsVirtualKeyCode": 9}, "Enter": {"windowsVirtualKeyCode": 13, "text": "\r"}}.get(key, {}))
        if text:
            described["text"] = text
        self.ask("Input.dispatchKeyEvent", type="keyDown", **described)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **described)

    def picture(self, path, quality=80):
        """Keeps a picture of the window, as WebP."""
        data = self.ask("Page.captureScreenshot", format="webp", quality=quality)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
