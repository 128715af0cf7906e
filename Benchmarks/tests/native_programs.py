"""The programs in memory, built and run for a moment: that they still fit the data plane and say what the harness reads. Not among
the quick tests, since the data plane is compiled for them."""
import json
import subprocess
import unittest

from harness.hosts import run
from harness.native import native, with_data_plane


def lines(*command):
    return [json.loads(line) for line in run(*command).splitlines()]


class Programs(unittest.TestCase):
    def test_handshake(self):
        (figures,) = lines(with_data_plane("handshake"), "0.05", "48")
        self.assertEqual(figures["peers"], 48)
        self.assertGreaterEqual(figures["handshakes"], 48)
        for key in ("initiate_ns", "answer_ns", "finish_ns", "answer_first_ns", "x25519_openssl_ns", "x25519_libsodium_ns"):
            self.assertGreater(figures[key], 0, key)
        fastest = min(figures["x25519_openssl_ns"], figures["x25519_libsodium_ns"])
        self.assertAlmostEqual(figures["ratio"], 4 * fastest / figures["answer_ns"], places=2)

    def test_core(self):
        figures = lines(with_data_plane("core"), "0.001")
        self.assertEqual({(f["size"], f["batch"]) for f in figures}, {(s, b) for s in (64, 256, 512, 1420, 9000) for b in (1, 8, 64)})
        self.assertEqual(run(with_data_plane("core"), "count", "1420", "64", "2"), "")

    def test_lanes(self):
        # A machine with one processor, or a busy one, completes no round.
        for figures in lines(with_data_plane("lanes"), "0.2"):
            self.assertIn(figures["size"], (64, 1420))
            self.assertGreater(figures["turns"], 0)
            for name in ("seal", "seal two", "seal apart", "open", "beside, seal", "beside, open"):
                self.assertEqual(len(figures[name]), figures["rounds"], name)
                self.assertTrue(all(rate > 0 for rate in figures[name]), name)

    def test_aead(self):
        figures = lines(with_data_plane("aead"), "0.001")
        for algorithm in ("ChaCha20-Poly1305", "AES-256-GCM"):
            kinds = {f["kind"] for f in figures if f["algorithm"] == algorithm}
            self.assertEqual(kinds, {"table", "raw"}, algorithm)

    def test_clients_have_keys_of_their_own(self):
        text = run(with_data_plane("clients"), "config", "300", "192.0.2.1")
        for key in ("PublicKey", "PresharedKey", "AllowedIPs", "Endpoint"):
            values = [line for line in text.splitlines() if line.startswith(key + " =")]
            self.assertEqual((len(values), len(set(values))), (300, 300), key)

    def test_others_build_and_explain_themselves(self):
        for program in (with_data_plane("fixed_key"), native("pps"), native("rtt"), native("syscalls")):
            result = subprocess.run([program], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout), (2, ""), program)
            self.assertTrue(result.stderr.startswith("usage: "), program)
