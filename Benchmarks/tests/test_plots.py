import unittest
from xml.etree import ElementTree

from harness import headline, plots, svg
from tests import sample

SVG = "{http://www.w3.org/2000/svg}"


class Plots(unittest.TestCase):
    def test_all_are_drawn_and_are_xml(self):
        results = sample.every()
        drawn = plots.draw({"results": results, "headline": headline.headline(results)})
        self.assertEqual(
            sorted(drawn),
            ["headline.svg", "latency-idle.svg", "latency-under-load.svg", "memory-over-time.svg", "ratios.svg", "small-packets.svg",
             "throughput-by-size.svg"],
        )
        for name, content in drawn.items():
            with self.subTest(name):
                self.assertEqual(ElementTree.fromstring(content).tag, SVG + "svg")

    def test_a_bar_for_each_row_also_without_a_figure(self):
        results = sample.every()
        results["tunnel"]["ratios"] = {kind: {} for kind in results["tunnel"]["ratios"]}
        tree = ElementTree.fromstring(plots.headline_bars(headline.headline(results)))
        self.assertEqual(len(tree.findall(SVG + "rect")), len(headline.ROWS) + 1)  # and the background

    def test_a_shorter_round_trip_is_a_longer_bar(self):
        texts = [t.text for t in ElementTree.fromstring(plots.ratio_bars({"latency": sample.latency(ours=50.0, peer=200.0)})).findall(SVG + "text")]
        self.assertIn("round trip, idle median", texts)
        self.assertIn("4.00 times", texts)

    def test_a_ratio_without_its_peer_is_said(self):
        self.assertIn("missing", plots.ratio_bars({"tunnel": {"ratios": {"TCP, one stream": {}}}}))
        self.assertIn("not counted", plots.ratio_bars({"tunnel": sample.tunnel(peer=0.1)}))

    def test_points_stay_inside(self):
        curve = [(1, 0.01), (10, 5), (1000, 100)]
        tree = ElementTree.fromstring(svg.lines("t", "x", "y", [("a", curve)], x_log=True, y_log=True))
        for pair in tree.find(SVG + "polyline").get("points").split():
            x, y = map(float, pair.split(","))
            self.assertTrue(0 <= x <= svg.WIDTH and 0 <= y <= 420, pair)

    def test_zero_has_no_place_on_a_logarithmic_axis(self):
        tree = ElementTree.fromstring(svg.lines("t", "x", "y", [("a", [(0, 0), (1, 1), (10, 10)])], x_log=True, y_log=True))
        self.assertEqual(len(tree.find(SVG + "polyline").get("points").split()), 2)

    def test_nothing_measured_is_said(self):
        self.assertIn("nothing was measured", svg.lines("t", "x", "y", [("a", [])]))

    def test_texts_are_escaped(self):
        ElementTree.fromstring(svg.lines("a < b & c", "<x>", "&y", [("<a>", [(1, 1), (2, 2)])]))


class Ticks(unittest.TestCase):
    def test_linear_ones_are_round_and_few(self):
        self.assertEqual(svg.ticks(0, 10, False), [0, 2, 4, 6, 8, 10])
        for high in (0.7, 3, 17, 990, 123456):
            self.assertTrue(3 <= len(svg.ticks(0, high, False)) <= 7, high)

    def test_logarithmic_ones_lie_inside(self):
        for value in svg.ticks(30, 4000, True):
            self.assertTrue(30 <= value <= 4000)
        self.assertEqual(svg.ticks(1, 1e6, True), [10.0**e for e in range(7)])
