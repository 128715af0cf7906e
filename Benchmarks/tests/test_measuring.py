import os
import tempfile
import unittest

from harness import core, hosts, iperf, lanes, threads, tunnel


class Lanes(unittest.TestCase):
    def test_beside_adds_the_share_of_each(self):
        figure = {"seal": [100.0, 200.0], "beside, seal": [90.0, 100.0], "open": [50.0, 50.0], "beside, open": [40.0, 50.0]}
        self.assertEqual([round(v, 9) for v in lanes.beside(figure)["values"]], [1.7, 1.5])

    def test_spells_are_one_measurement(self):
        spell = lambda *rates: [{"size": 64, "batch": 64, "turns": 5, "rounds": len(rates), "seal": list(rates)}]
        self.assertEqual(
            lanes.joined([spell(1.0), spell(2.0, 3.0), spell()]),
            [{"size": 64, "batch": 64, "turns": 15, "rounds": 3, "seal": [1.0, 2.0, 3.0]}],
        )

    def test_a_machine_that_was_too_busy_gives_no_ratio(self):
        none = {name: [] for name in ("seal", "seal two", "seal apart", "open", "beside, seal", "beside, open")}
        self.assertEqual({r["median"] for r in lanes.evaluate(none).values()}, {None})


class Iperf(unittest.TestCase):
    def test_what_arrived(self):
        report = {"end": {"sum_received": {"bytes": 1000, "seconds": 2.0}}}
        self.assertEqual(iperf.received(report), (1000, 2.0))

    def test_lost_datagrams_did_not_arrive(self):
        report = {"end": {"sum": {"packets": 100, "lost_packets": 25, "seconds": 3.0}}}
        self.assertEqual(iperf.received(report, 1300), (75 * 1300, 3.0))


class Processes(unittest.TestCase):
    def test_processor_time_of_each_end_for_a_gigabyte(self):
        self.assertEqual(tunnel.per_gigabyte([1.0, 2.0], [3.0, 5.0], 2e9), [1.0, 1.5])
        self.assertEqual(tunnel.per_gigabyte([None, 2.0], [None, 5.0], 1e9), [None, 3.0])

    def test_our_own_figures_can_be_read(self):
        memory = hosts.memory_of(os.getpid())
        self.assertTrue(0 < memory["owned"] <= memory["resident"] <= memory["peak"])
        before = hosts.cpu_of(os.getpid())
        while hosts.cpu_of(os.getpid()) == before:
            pass
        self.assertGreaterEqual(hosts.wait_of(os.getpid()), 0)


class Threads(unittest.TestCase):
    def test_are_compared_round_by_round(self):
        figure = lambda gbit, cpu: {kind: {"gbit": gbit, "cpu": cpu} for kind in threads.CHOSEN}
        results = threads.compare({"1": [figure(2.0, 1.0), figure(4.0, 2.0)], "2": [figure(3.0, 1.5), figure(4.0, 3.0)]})
        self.assertEqual(results["over one"]["2"]["TCP, one stream"]["values"], [1.5, 1.0])
        self.assertEqual(results["cpu over one"]["2"]["TCP, one stream"]["values"], [1.5, 1.5])
        self.assertNotIn("1", results["over one"])
        self.assertIn("1.25 (1.00 to 1.50)", threads.text_of(results))


class Callgrind(unittest.TestCase):
    def test_what_a_callee_costs_is_counted_once_where_it_lies(self):
        lines = ["events: Ir", "ob=(2) /lib/libcrypto.so.3", "fn=(2) b", "0 900", "cob=(1) /x/core", "cfn=(3) c", "calls=1 0", "11 7",
                 "ob=(1)", "fn=(1) a", "10 100", "calls=1 0", "11 900", "+1 5", "fn=(3) c", "* 7", "totals: 1012"]
        with tempfile.NamedTemporaryFile("w", suffix=".out") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            self.assertEqual(core.own_and_all(file.name, "/elsewhere/core"), (112, 1012))
