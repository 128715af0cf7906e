import unittest

from harness import headline, report
from tests import sample


def row(rows, start):
    return next(r for r in rows if r["what"].startswith(start))


class Headline(unittest.TestCase):
    def test_everything_reached(self):
        rows = headline.headline(sample.every())
        self.assertEqual(len(rows), len(headline.ROWS))
        self.assertEqual([(r["what"], r["outcome"], r["measured"]) for r in headline.failures(rows)], [])

    def test_only_what_was_run_is_asked_for(self):
        self.assertEqual({r["benchmark"] for r in headline.headline({"core": sample.core()})}, {"core"})

    def test_a_benchmark_that_failed_leaves_its_rows_missing(self):
        rows = headline.headline({"core": sample.core()}, failed={"null": "no answer"})
        self.assertEqual([r["outcome"] for r in rows], [headline.MISSING] * 3 + [headline.REACHED])
        self.assertEqual(rows[0]["note"], "null failed")

    def test_what_the_options_left_out_has_no_row(self):
        results = sample.tunnel(12, 3)
        results["mixed"] = False
        results["ratios"] = {"TCP, one stream": results["ratios"]["TCP, one stream"]}
        rows = headline.headline({"tunnel": results})
        self.assertEqual(len(rows), 5)  # one stream, and four of system calls
        self.assertEqual(headline.failures(rows), [])

    def test_below_its_target(self):
        rows = headline.headline({"tunnel": sample.tunnel(ours=5.0, peer=3.0)})
        self.assertEqual(row(rows, "one TCP stream")["outcome"], headline.BELOW)
        self.assertAlmostEqual(row(rows, "one TCP stream")["measured"], 5 / 3)

    def test_above_an_upper_bound(self):
        memory = sample.memory()
        memory["figures"]["kape"]["full rate owned"] = 5_100_000
        rows = headline.headline({"memory": memory})
        self.assertEqual([r["outcome"] for r in rows], [headline.BELOW, headline.REACHED])

    def test_two_threads_may_be_a_little_slower_than_one(self):
        outcome = lambda two: {r["outcome"] for r in headline.headline({"threads": sample.threads(two, 3.0)})}
        self.assertEqual(outcome(2.85), {headline.REACHED})
        self.assertEqual(outcome(2.84), {headline.BELOW})

    def test_without_the_peer_it_is_missing(self):
        results = sample.tunnel()
        results["ratios"] = {kind: {} for kind in results["ratios"]}
        results["mixed over peer"] = {kind: {} for kind in results["mixed over peer"]}
        rows = headline.headline({"tunnel": results})
        self.assertEqual(row(rows, "one TCP stream")["outcome"], headline.MISSING)
        self.assertEqual(row(rows, "ours sending")["outcome"], headline.MISSING)
        self.assertEqual(row(rows, "system calls for 64 KiB, epoll, sender")["outcome"], headline.REACHED)

    def test_what_could_not_be_counted_is_missing(self):
        results = sample.tunnel(12, 3)
        results["io_uring"], results["calls"] = None, {"kape/kape": None}
        outcomes = [r["outcome"] for r in headline.headline({"tunnel": results}) if r["what"].startswith("system calls")]
        self.assertEqual(outcomes, [headline.MISSING] * 4)

    def test_a_run_with_a_slow_peer_is_marked(self):
        rows = headline.headline({"tunnel": sample.tunnel(ours=6.0, peer=1.9)})
        self.assertEqual(row(rows, "one TCP stream")["outcome"], headline.NOT_COUNTED)
        self.assertIn("1 of 1 runs not counted", row(rows, "one TCP stream")["note"])
        self.assertEqual(row(rows, "UDP")["outcome"], headline.BELOW)

    def test_fewer_peers_say_nothing_about_10_000(self):
        rows = headline.headline({"peers": sample.peers(most=100)})
        self.assertEqual({r["outcome"] for r in rows}, {headline.MISSING})

    def test_a_gate_that_fails_is_not_reached(self):
        rows = headline.headline({"gates": {"passed": False, "allocations": None}})
        self.assertEqual(rows[0]["outcome"], headline.MISSING)
        self.assertTrue(headline.failures(rows))


class Page(unittest.TestCase):
    def setUp(self):
        self.result = {
            "machine": {"time": "t", "commit": "c", "kernel": "k", "cores": 2, "cpu": "x"},
            "programs": {"kape": "kape 0.1.0"},
            "options": {"rounds": 3, "seconds": 3.0, "quick": False, "kind": None, "congestion": "cubic"},
            "headline": headline.headline(sample.every()),
        }

    def test_only_what_stands_between_the_markers_changes(self):
        page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
        self.assertEqual(report.replace_between(page, "new"), f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n")

    def test_a_page_without_a_place_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no place for the headline"):
            report.replace_between("before\n", "new")

    def test_the_real_page_has_its_place(self):
        with open(report.PAGE) as file:
            self.assertIn("new", report.replace_between(file.read(), "new"))

    def test_every_row_is_there_with_what_it_belongs_to(self):
        text = report.headline_markdown(self.result)
        self.assertTrue(text.startswith("t, commit c, Linux k, 2 × x; kape: kape 0.1.0; rounds 3 seconds 3, TCP cubic."))
        self.assertEqual(text.count("\n| "), len(headline.ROWS) + 1)
