"""Uses the viewer as people do: three clicks for the kernel that takes most time, why it stalls and when; a keyboard
alone; dark and light; narrow and wide; names that carry markup.

    check.py ADDRESS [PICTURES]
    check.py ADDRESS --speed

With PICTURES, pictures are kept as PICTURES-which.webp and the like. With --speed, nothing but the time to open and the
frames a second while panning is looked at.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

ROW = ".run .kernels tbody tr"


def three_clicks(page, keep):
    """Which kernel takes most time, why it stalls, and when it ran; `keep` takes a picture after each click."""
    rows = page.evaluate(f"[...document.querySelectorAll('{ROW}')].map((row) => row.cells[0].textContent)")
    assert rows, "no kernel is listed"
    page.click(".run .kernels thead th:nth-child(3) button")
    shares = page.evaluate(f"[...document.querySelectorAll('{ROW}')].map((row) => parseFloat(row.cells[2].textContent) || 0)")
    assert shares == sorted(shares, reverse=True), shares
    keep("which")
    page.click(f"{ROW}:first-child")
    page.wait("document.querySelector('.run .bars span') !== null")
    why = page.evaluate("document.querySelector('.run .bars span').textContent")
    assert why, "no reason is given"
    keep("why")
    before = page.evaluate("document.querySelector('.run').dataset.ready")
    page.click(".run .when")
    page.wait("document.getElementById('status').textContent.startsWith('launch ')")
    page.wait(f"document.querySelector('.run').dataset.ready !== {json.dumps(before)}")
    when = page.evaluate("document.getElementById('status').textContent")
    keep("when")
    print(f"three clicks: {rows[0]}; {why}; {when}")


def brushing(page):
    """A drag over a chart zooms all charts of the run; a key shows all again."""
    page.click(".run [role=toolbar] button")
    page.wait("document.querySelector('.run').dataset.ready.startsWith('0 ')")
    before = page.evaluate("document.querySelector('.run').dataset.ready")
    page.drag(".run .u-over", 0.3, 0.6)
    after = page.wait(f"document.querySelector('.run').dataset.ready !== {json.dumps(before)} && document.querySelector('.run').dataset.ready")
    whole, (begin, end) = [float(word) for word in before.split()], [float(word) for word in after.split()]
    assert 0.2 < (end - begin) / (whole[1] - whole[0]) < 0.4, (before, after)
    page.evaluate("document.querySelector('.run .chart').focus()")
    page.key("0", "Digit0", "0")
    page.wait(f"document.querySelector('.run').dataset.ready === {json.dumps(before)}")


def keyboard(page):
    """Tab reaches a kernel and a chart; Enter chooses; plus zooms."""
    page.evaluate("document.querySelector('.skip').focus()")
    seen = set()
    for _ in range(400):
        page.key("Tab")
        what = page.evaluate("[document.activeElement.tagName, document.activeElement.className, document.activeElement.closest('.run') !== null].join(' ')")
        if what.startswith("TR") and "row" not in seen:
            seen.add("row")
            page.key("Enter")
            page.wait("document.activeElement.getAttribute('aria-selected') === 'true'")
        if what.startswith("DIV chart"):
            before = page.evaluate("document.querySelector('.run').dataset.ready")
            page.key("+", "Equal", "+")
            page.wait(f"document.querySelector('.run').dataset.ready !== {json.dumps(before)}")
            seen.add("chart")
            break
    assert seen == {"row", "chart"}, seen


def sizes(page, address, keep):
    """Nothing sticks out at either width, in either scheme, and charts are drawn."""
    for width, dark in [(1280, False), (1280, True), (2560, False)]:
        page.open(address, width, 800 if width == 1280 else 1300, dark)
        over = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
        assert over <= 0, f"{over} pixels stick out at {width}"
        drawn = page.evaluate("""[...document.querySelectorAll('.run canvas')].map((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set();
            for (let at = 0; at < pixels.length; at += 4 * 997) colours.add(pixels.slice(at, at + 4).join());
            return colours.size; })""")
        assert drawn and min(drawn) > 1, f"an empty chart at {width}: {drawn}"
        if dark:
            page.click(f"{ROW}:first-child")
            page.wait("document.querySelector('.run .bars span') !== null")
            keep("dark")


def speed(page, address):
    """How long it takes to open, and how smoothly it pans."""
    page.open(address)
    opened = page.evaluate("performance.now()")
    page.evaluate("document.querySelector('.run .chart').focus()")
    for _ in range(3):
        page.key("+", "Equal", "+")
    frames = page.evaluate("""new Promise((done) => {
        const times = [], chart = document.querySelector('.run .chart');
        const step = (now) => {
            times.push(now);
            chart.dispatchEvent(new KeyboardEvent('keydown', { key: times.length % 20 < 10 ? 'ArrowRight' : 'ArrowLeft' }));
            if (times.length < 60) requestAnimationFrame(step);
            else {
                const gaps = times.slice(1).map((time, at) => time - times[at]).sort((a, b) => a - b);
                done(gaps[gaps.length >> 1]);
            }
        };
        requestAnimationFrame(step);
    })""")
    print(f"opened within {opened:.0f} ms; {1000 / frames:.0f} frames a second while panning (median)")


def main():
    path = browser.find()
    if not path:
        print("skipped: no Chromium is installed")
        return
    address, *rest = sys.argv[1:]
    only_speed = rest[:1] == ["--speed"]
    pictures = rest[0] if rest and not only_speed else None
    page = browser.Browser(path)

    def keep(what):
        if pictures:
            page.evaluate("scrollTo(0, 0)")
            page.picture(f"{pictures}-{what}.webp")

    try:
        if only_speed:
            speed(page, address)
            print("all is well")
            return
        page.open(address)
        title = page.evaluate("document.title")
        if page.evaluate("typeof window.uPlot") == "undefined":
            assert page.evaluate("!document.getElementById('no-charts').hidden"), "charts are missing and nothing says so"
            print("skipped: this build has no charting library (cargo xtask viewer)")
            return
        three_clicks(page, keep)
        brushing(page)
        keyboard(page)
        sizes(page, address, keep)
        speed(page, address)
        assert page.evaluate("document.title") == title, "a name has run as a script"
        assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0, "a name has become markup"
        assert not page.problems, page.problems
        print("all is well")
    finally:
        page.close()


main()
