import unittest

from harness import figures


class Summary(unittest.TestCase):
    def test_median_and_spread(self):
        s = figures.summary([3, 1, 2])
        self.assertEqual((s["median"], s["min"], s["max"], s["values"]), (2, 1, 3, [3, 1, 2]))

    def test_of_nothing_is_nothing(self):
        self.assertIsNone(figures.summary([])["median"])


class Ratios(unittest.TestCase):
    def test_are_taken_pair_by_pair(self):
        # The medians' ratio would be 2; that of neighbours is what drift leaves standing.
        r = figures.ratios([2, 4, 9], [1, 4, 3])
        self.assertEqual((r["median"], r["min"], r["max"]), (2, 1, 3))
        self.assertEqual(figures.ratios([1, 4, 9], [1, 2, 3])["values"], [1, 2, 3])

    def test_a_slow_peer_is_not_counted(self):
        r = figures.counted_ratios([6, 6, 6], [3, 2, 1], known=2.8)
        self.assertEqual((r["values"], r["counted"], r["of"]), ([2, 3], 2, 3))
        self.assertEqual(r["all"]["values"], [2, 3, 6])

    def test_the_bound_itself_counts(self):
        self.assertEqual(figures.counted_ratios([1], [7], known=10)["counted"], 1)
        self.assertEqual(figures.counted_ratios([1], [6.999], known=10)["counted"], 0)

    def test_where_lower_is_better_a_slow_peer_takes_longer(self):
        r = figures.counted_ratios([100, 100], [290, 500], known=290, lower_is_better=True)
        self.assertEqual((r["values"], r["counted"]), ([100 / 290], 1))

    def test_a_run_may_be_judged_by_another_figure(self):
        r = figures.counted_ratios([10, 10], [2, 5], known=100, judged=[100, 60])
        self.assertEqual((r["values"], r["counted"], r["of"]), ([5], 1, 2))

    def test_nothing_known_counts_all(self):
        self.assertEqual(figures.counted_ratios([1, 2], [1, 1])["counted"], 2)


class Sustained(unittest.TestCase):
    def rows(self, *points):
        return [{"sent": sent, "loss": loss} for sent, loss in points]

    def test_lies_between_the_last_good_rate_and_the_next(self):
        # 0 % at 100, 2 % at 200: 1 % is half way.
        self.assertAlmostEqual(figures.sustained(self.rows((100, 0), (200, 0.02))), 150)

    def test_a_blip_at_a_low_rate_does_not_hide_a_high_one(self):
        self.assertAlmostEqual(figures.sustained(self.rows((100, 0.5), (200, 0.0), (300, 0.02))), 250)

    def test_when_nothing_is_lost_it_is_the_highest_sent(self):
        self.assertEqual(figures.sustained(self.rows((300, 0.001), (100, 0))), 300)

    def test_when_the_first_rate_loses_it_is_below_it(self):
        self.assertAlmostEqual(figures.sustained(self.rows((100, 0.1), (200, 0.5))), 10)


class Texts(unittest.TestCase):
    def test_what_was_left_out_is_said(self):
        self.assertEqual(figures.show(figures.counted_ratios([4, 4], [2, 1], known=2)), "2.00 (2.00 to 2.00), 1 of 2 counted")
        self.assertEqual(figures.show(figures.counted_ratios([4], [1], known=2)), "not counted")

    def test_columns_line_up(self):
        lines = figures.table(("a", "b"), [("long name", 1), ("x", 22)]).splitlines()
        self.assertEqual(lines, ["a           b", "---------  --", "long name   1", "x          22"])
