/* Known answers for what the protocol is made of. Handshake, cookie and transport answers were computed with Python's
   hashlib and `cryptography` from the paper's text, with the inputs given here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kdp/aead.h"
#include "support/hex.h"
#include "support/rng.h"
#include "wireguard/blake2s.h"
#include "wireguard/cookie.h"
#include "wireguard/kdf.h"
#include "wireguard/noise.h"
#include "wireguard/tai64n.h"

static void expect_hex(const char *expected, const uint8_t *got, size_t size) {
  uint8_t bytes[512];
  assert_int_equal(hex_read(expected, bytes), size);
  assert_memory_equal(got, bytes, size);
}

/* ---- BLAKE2s ---- */

static void rfc_7693_appendix_b_abc(void **state) {
  (void)state;
  uint8_t hash[32];
  kdp_wg_hash(hash, "abc", 3, NULL, 0);
  expect_hex("508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982", hash, 32);
}

/* RFC 7693 appendix E: a hash over hashes of many sizes, with and without key. */
static void self_test_sequence(uint8_t *out, size_t size, uint32_t seed) {
  uint32_t a = 0xdead4bad * seed, b = 1;
  for (size_t i = 0; i < size; i++) {
    uint32_t t = a + b;
    a = b;
    b = t;
    out[i] = (uint8_t)(t >> 24);
  }
}

static void rfc_7693_appendix_e_self_test(void **state) {
  (void)state;
  static const uint32_t hash_sizes[] = {16, 20, 28, 32};
  static const size_t input_sizes[] = {0, 3, 64, 65, 255, 1024};
  uint8_t input[1024], hash[32], key[32];
  kdp_blake2s all;
  kdp_blake2s_start(&all, 32, NULL, 0);
  for (size_t i = 0; i < 4; i++) {
    uint32_t size = hash_sizes[i];
    for (size_t j = 0; j < 6; j++) {
      self_test_sequence(input, input_sizes[j], (uint32_t)input_sizes[j]);
      kdp_blake2s_mac(hash, size, NULL, 0, input, input_sizes[j]);
      kdp_blake2s_update(&all, hash, size);
      self_test_sequence(key, size, size);
      kdp_blake2s_mac(hash, size, key, size, input, input_sizes[j]);
      kdp_blake2s_update(&all, hash, size);
    }
  }
  kdp_blake2s_finish(&all, hash);
  expect_hex("6a411f08ce25adcdfb02aba641451cec53c598b24f4fc787fbdc88797f4c1dfe", hash, 32);
}

/* From the reference implementation's known answers: input 00 01 02 ..., key 00 to 1f. */
static void blake2s_reference_answers(void **state) {
  (void)state;
  static const struct {
    size_t size;
    const char *plain, *keyed;
  } rows[] = {
      {0, "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9",
       "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49"},
      {1, "e34d74dbaf4ff4c6abd871cc220451d2ea2648846c7757fbaac82fe51ad64bea",
       "40d15fee7c328830166ac3f918650f807e7e01e177258cdc0a39b11f598066f1"},
      {63, "e57cb79487dd57902432b250733813bd96a84efce59f650fac26e6696aefafc3",
       "c65382513f07460da39833cb666c5ed82e61b9e998f4b0c4287cee56c3cc9bcd"},
      {64, "56f34e8b96557e90c1f24b52d0c89d51086acf1b00f634cf1dde9233b8eaaa3e",
       "8975b0577fd35566d750b362b0897a26c399136df07bababbde6203ff2954ed4"},
      {65, "1b53ee94aaf34e4b159d48de352c7f0661d0a40edff95a0b1639b4090e974472",
       "21fe0ceb0052be7fb0f004187cacd7de67fa6eb0938d927677f2398c132317a8"},
      {127, "f18417b39d617ab1c18fdf91ebd0fc6d5516bb34cf39364037bce81fa04cecb1",
       "ddbfea75cc467882eb3483ce5e2e756a4f4701b76b445519e89f22d60fa86e06"},
      {128, "1fa877de67259d19863a2a34bcc6962a2b25fcbf5cbecd7ede8f1fa36688a796",
       "0c311f38c35a4fb90d651c289d486856cd1413df9b0677f53ece2cd9e477c60a"},
      {129, "5bd169e67c82c2c2e98ef7008bdf261f2ddf30b1c00f9e7f275bb3e8a28dc9a2",
       "46a73a8dd3e70f59d3942c01df599def783c9da82fd83222cd662b53dce7dbdf"},
      {255, "f03f5789d3336b80d002d59fdf918bdb775b00956ed5528e86aa994acb38fe2d",
       "3fb735061abc519dfe979e54c1ee5bfad0a9d858b3315bad34bde999efd724dd"},
  };
  uint8_t input[256], hash[32];
  for (size_t i = 0; i < sizeof input; i++)
    input[i] = (uint8_t)i;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    kdp_blake2s_mac(hash, 32, NULL, 0, input, rows[i].size);
    expect_hex(rows[i].plain, hash, 32);
    kdp_blake2s_mac(hash, 32, input, 32, input, rows[i].size);
    expect_hex(rows[i].keyed, hash, 32);
  }
}

static void blake2s_in_pieces_is_blake2s_of_the_whole(void **state) {
  (void)state;
  rng r = {7};
  uint8_t input[700], whole[32], pieces[32];
  for (int round = 0; round < 200; round++) {
    size_t size = rng_below(&r, sizeof input);
    rng_fill(&r, input, size);
    kdp_blake2s_mac(whole, 32, NULL, 0, input, size);
    kdp_blake2s hash;
    kdp_blake2s_start(&hash, 32, NULL, 0);
    for (size_t at = 0; at < size;) {
      size_t part = rng_below(&r, 130);
      if (part > size - at) part = size - at;
      kdp_blake2s_update(&hash, input + at, part);
      at += part;
    }
    kdp_blake2s_finish(&hash, pieces);
    assert_memory_equal(whole, pieces, 32);
  }
}

/* ---- Key derivation ---- */

static void kdf_known_answers(void **state) {
  (void)state;
  uint8_t chaining_key[32], input[50], first[32], second[32], third[32];
  for (size_t i = 0; i < sizeof chaining_key; i++)
    chaining_key[i] = (uint8_t)i;
  for (size_t i = 0; i < sizeof input; i++)
    input[i] = (uint8_t)(100 + i);
  kdp_wg_kdf(chaining_key, input, sizeof input, first, second, third);
  expect_hex("37f059bb1da97ac4fb74043c3d7befe83a688ccf1ebf27573464a15d6e92992b", first, 32);
  expect_hex("7dd7d13ee0d023e5756c27b2a1aee871341654294d978e59395b001bd4ec7f02", second, 32);
  expect_hex("eb43cedd3f5c1328e539dbb39c46fef7cec02d6bce7389862d2af76dae53b463", third, 32);
  kdp_wg_kdf(chaining_key, NULL, 0, first, second, third);
  expect_hex("7a38c34bf2b8738d7374ca77c44ecb309a11d2b2528304fa86052c365e722624", first, 32);
  expect_hex("1a17621f346abdc520746a9fb64d8eb03231d674fc15687537b0780fd9c060fd", second, 32);
  expect_hex("4eaf02809ac4b930ef63479de62275f1c55656e61f78a3cc653c18a2223d6c5f", third, 32);
  /* An output may be the chaining key itself, and fewer outputs are the first of three. */
  kdp_wg_kdf(chaining_key, input, sizeof input, chaining_key, NULL, NULL);
  expect_hex("37f059bb1da97ac4fb74043c3d7befe83a688ccf1ebf27573464a15d6e92992b", chaining_key, 32);
}

static void hmac_known_answers(void **state) {
  (void)state;
  uint8_t key[64], input[50], mac[32];
  for (size_t i = 0; i < sizeof key; i++)
    key[i] = (uint8_t)i;
  for (size_t i = 0; i < sizeof input; i++)
    input[i] = (uint8_t)(100 + i);
  kdp_wg_hmac(mac, key, 32, input, sizeof input);
  expect_hex("9c5832c1a2a8c26e4aea5d9c3f5f74b60ecb066bc895ee9955181d4daae3c88b", mac, 32);
  kdp_wg_hmac(mac, key, 64, "abc", 3);
  expect_hex("3a0ef09eac123871fb79852ec512086d013abff437bd68ca03630932bd6ba81f", mac, 32);
}

/* ---- TAI64N ---- */

static void stamps_known_answers(void **state) {
  (void)state;
  static const struct {
    uint64_t wall;
    const char *stamp;
  } rows[] = {
      {0, "400000000000000a00000000"},
      {999999999, "400000000000000a3b000000"},
      {UINT64_C(1777629600123456789), "4000000069f479aa07000000"},
      {1 << 24, "400000000000000a01000000"},
      {(1 << 24) - 1, "400000000000000a00000000"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint8_t stamp[12];
    uint64_t time = rows[i].wall < KDP_WG_STAMP_STEP ? 0 : kdp_wg_stamp_next(rows[i].wall, 0);
    kdp_wg_stamp_write(time, stamp);
    expect_hex(rows[i].stamp, stamp, 12);
  }
}

static void the_low_bits_of_the_clock_do_not_show(void **state) {
  (void)state;
  rng r = {3};
  for (int i = 0; i < 1000; i++) {
    uint8_t stamp[12];
    kdp_wg_stamp_write(kdp_wg_stamp_next(rng_next(&r) >> 2, 0), stamp);
    assert_memory_equal(stamp + 9, "\0\0\0", 3);
    assert_true(kdp_load_be32(stamp + 8) < KDP_SECOND);
  }
}

static void stamps_rise_whatever_the_clock_does(void **state) {
  (void)state;
  rng r = {5};
  uint8_t before[12] = {0}, stamp[12];
  uint64_t last = 0, wall = UINT64_C(1777629600) * KDP_SECOND;
  for (int i = 0; i < 5000; i++) {
    wall += rng_below(&r, 3) == 0 ? rng_below(&r, 1 << 30) : 0;
    if (rng_one_in(&r, 50)) wall = UINT64_C(1577836800) * KDP_SECOND + rng_below(&r, 1 << 30);
    if (rng_one_in(&r, 50)) wall = UINT64_C(1777629600) * KDP_SECOND + (uint64_t)i * KDP_SECOND;
    last = kdp_wg_stamp_next(wall, last);
    kdp_wg_stamp_write(last, stamp);
    assert_true(memcmp(stamp, before, sizeof stamp) > 0);
    memcpy(before, stamp, sizeof stamp);
  }
}

/* ---- Handshake ---- */

#define A_PRIVATE "00ab0e947f5caa6f53042086d01ee69dd9ecf6caba60469a6fd34e0b9da0fa48"
#define A_PUBLIC "f135e10158547d1e99779139a0c2f35cfe2b5c9a5b2c0dd8d34ebb89815b8262"
#define B_PRIVATE "a0e54885e2f8e8c0d569731f6a3fd6c8c7eb1deb67b10cd482f6687d771cc96c"
#define B_PUBLIC "236bf0f059d9c954cb48aba59eeadfc532e9327a648616dea9a788f280b43247"
#define PRESHARED "9e6ef675ffc8fa197d2fb2d631f54f69a6b976dfb6f52e0d90470ef956a0d863"
#define NO_PRESHARED "0000000000000000000000000000000000000000000000000000000000000000"

/* Ephemeral keys are 40 41 42 ... and 80 81 82 ...; sender indices 0x11223344 and 0xaabbccdd; the stamp's wall time is
   2026-05-01 10:00:00.123456789. Both MAC1 are in, MAC2 are zero. */
#define INITIATION                                                                                                     \
  "010000004433221179a631eede1bf9c98f12032cdeadd0e7a079398fc786b88cc846ec89af85a51aaf78a785888c18dffdb126e53bb2e2f4"   \
  "3ef38e2c6036ce48edafbd01c267cee2c02034b0d13584735b570573ca45c9b379a820fc49c7389b374fe32930948cde1a9b5f53aedd17b4"   \
  "1bb6359022faf5987fcdb128ca622af3897a910300000000000000000000000000000000"

typedef struct handshake_answer {
  const char *preshared, *response, *initiator_sends, *responder_sends;
} handshake_answer;

static const handshake_answer answers[] = {
    {PRESHARED,
     "02000000ddccbbaa44332211493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531dc6b7c88bdb9217687177085cb"
     "7"
     "a390f39cb8f446111e8017df95ad140f23f60600000000000000000000000000000000",
     "616cc443475de51b36b4264551ddbdc9dad6be9bf8e9a67fd7bbcb3fc337ac04",
     "37ab5245e39b76df3b2a7a5ec64c0bb0ea99ec414b06b71eaca84d0f2d41a17b"},
    {NO_PRESHARED,
     "02000000ddccbbaa44332211493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531ddad3da260aa8bc9302e5ea56a"
     "1"
     "7c0379238c14e32bdffa926d01cbcef5ccda9b00000000000000000000000000000000",
     "be4f238a000cc75c68f544ca3f09ae09e13c962effc89263f1ede993dfb5ab9c",
     "dff90071933edb39c2d82ccf910528957b1ac17b2b9d10c20a2bc0e0812f0372"},
};

typedef struct ends {
  kdp_wg_identity a, b;
  uint8_t static_static[32], a_ephemeral[32], b_ephemeral[32], stamp[12];
  kdp_wg_cookie to_a, to_b;
} ends;

static ends make_ends(void) {
  ends e;
  uint8_t key[32];
  memset(&e, 0, sizeof e);
  hex_read(A_PRIVATE, key);
  kdp_wg_identity_set(&e.a, key);
  hex_read(B_PRIVATE, key);
  kdp_wg_identity_set(&e.b, key);
  expect_hex(A_PUBLIC, e.a.public_key, 32);
  expect_hex(B_PUBLIC, e.b.public_key, 32);
  assert_int_equal(kdp_wg_dh(e.static_static, e.a.private_key, e.b.public_key), KDP_OK);
  for (size_t i = 0; i < 32; i++) {
    e.a_ephemeral[i] = (uint8_t)(0x40 + i);
    e.b_ephemeral[i] = (uint8_t)(0x80 + i);
  }
  kdp_wg_stamp_write(kdp_wg_stamp_next(UINT64_C(1777629600123456789), 0), e.stamp);
  kdp_wg_cookie_start(&e.to_a, e.a.public_key);
  kdp_wg_cookie_start(&e.to_b, e.b.public_key);
  return e;
}

static void handshake_messages_known_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    ends e = make_ends();
    kdp_wg_handshake handshake;
    kdp_wg_initiation initiation;
    kdp_wg_response response;
    kdp_wg_reception reception;
    kdp_wg_session_keys a_keys, b_keys;
    uint8_t preshared[32];
    hex_read(answers[i].preshared, preshared);
    assert_int_equal(kdp_wg_initiation_create(&e.a, e.b.public_key, e.static_static, e.a_ephemeral, e.stamp, &handshake,
                                              &initiation),
                     KDP_OK);
    kdp_store_le32(initiation.sender, 0x11223344);
    kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
    expect_hex(INITIATION, (uint8_t *)&initiation, sizeof initiation);

    assert_int_equal(kdp_wg_initiation_open_static(&e.b, &initiation, &reception), KDP_OK);
    assert_memory_equal(reception.remote_static, e.a.public_key, 32);
    assert_int_equal(kdp_wg_initiation_open_timestamp(&initiation, e.static_static, &reception), KDP_OK);
    assert_memory_equal(reception.timestamp, e.stamp, 12);
    assert_int_equal(kdp_wg_response_create(&reception, preshared, e.b_ephemeral, &response, &b_keys), KDP_OK);
    kdp_store_le32(response.sender, 0xaabbccdd);
    kdp_store_le32(response.receiver, 0x11223344);
    kdp_wg_macs_write(&e.to_a, (uint8_t *)&response, sizeof response, 1);
    expect_hex(answers[i].response, (uint8_t *)&response, sizeof response);

    assert_int_equal(kdp_wg_response_consume(&e.a, &handshake, preshared, &response, &a_keys), KDP_OK);
    expect_hex(answers[i].initiator_sends, a_keys.send, 32);
    expect_hex(answers[i].responder_sends, a_keys.receive, 32);
    assert_memory_equal(a_keys.send, b_keys.receive, 32);
    assert_memory_equal(a_keys.receive, b_keys.send, 32);
  }
}

/* Any bit of a handshake message that is not under a MAC field is under its authentication. */
static void no_bit_of_a_handshake_message_may_change(void **state) {
  (void)state;
  ends e = make_ends();
  kdp_wg_reception reception, good;
  kdp_wg_initiation initiation;
  kdp_wg_response response;
  kdp_wg_session_keys keys;
  kdp_wg_handshake handshake;
  uint8_t preshared[32] = {0};
  hex_read(INITIATION, (uint8_t *)&initiation);
  for (size_t bit = 8 * 8; bit < offsetof(kdp_wg_initiation, macs) * 8; bit += 7) {
    kdp_wg_initiation bent = initiation;
    ((uint8_t *)&bent)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    /* X25519 ignores the top bit of the ephemeral's last byte, the hash does not. */
    kdp_status status = kdp_wg_initiation_open_static(&e.b, &bent, &reception);
    if (status == KDP_OK) status = kdp_wg_initiation_open_timestamp(&bent, e.static_static, &reception);
    assert_int_equal(status, KDP_AUTHENTICATION_FAILED);
  }
  assert_int_equal(kdp_wg_initiation_open_static(&e.b, &initiation, &good), KDP_OK);
  assert_int_equal(kdp_wg_initiation_open_timestamp(&initiation, e.static_static, &good), KDP_OK);
  reception = good;
  assert_int_equal(kdp_wg_response_create(&reception, preshared, e.b_ephemeral, &response, &keys), KDP_OK);
  assert_int_equal(
      kdp_wg_initiation_create(&e.a, e.b.public_key, e.static_static, e.a_ephemeral, e.stamp, &handshake, &initiation),
      KDP_OK);
  for (size_t bit = offsetof(kdp_wg_response, ephemeral) * 8; bit < offsetof(kdp_wg_response, macs) * 8; bit += 5) {
    kdp_wg_response bent = response;
    kdp_wg_handshake before = handshake;
    ((uint8_t *)&bent)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_int_equal(kdp_wg_response_consume(&e.a, &handshake, preshared, &bent, &keys), KDP_AUTHENTICATION_FAILED);
    assert_memory_equal(&handshake, &before, sizeof before);
  }
  preshared[5] = 1;
  assert_int_equal(kdp_wg_response_consume(&e.a, &handshake, preshared, &response, &keys), KDP_AUTHENTICATION_FAILED);
  preshared[5] = 0;
  assert_int_equal(kdp_wg_response_consume(&e.a, &handshake, preshared, &response, &keys), KDP_OK);
}

/* The points of small order, RFC 7748 section 7 and https://cr.yp.to/ecdh.html#validate. */
static void low_order_keys_are_refused(void **state) {
  (void)state;
  static const char *const points[] = {
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  };
  ends e = make_ends();
  kdp_wg_reception reception;
  kdp_wg_initiation initiation;
  kdp_wg_handshake handshake;
  uint8_t secret[32];
  hex_read(INITIATION, (uint8_t *)&initiation);
  for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
    uint8_t point[32];
    hex_read(points[i], point);
    assert_int_equal(kdp_wg_dh(secret, e.a.private_key, point), KDP_LOW_ORDER_KEY);
    memcpy(initiation.ephemeral, point, 32);
    assert_int_equal(kdp_wg_initiation_open_static(&e.b, &initiation, &reception), KDP_LOW_ORDER_KEY);
    kdp_wg_initiation own;
    assert_int_equal(kdp_wg_initiation_create(&e.a, point, e.static_static, e.a_ephemeral, e.stamp, &handshake, &own),
                     KDP_LOW_ORDER_KEY);
  }
}

/* ---- Cookies ---- */

static void counting_random(void *context, void *bytes, size_t size) {
  uint8_t *next = context;
  for (size_t i = 0; i < size; i++)
    ((uint8_t *)bytes)[i] = (*next)++;
}

static const kdp_address v4_source = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, 1}};

static void cookies_known_answers(void **state) {
  (void)state;
  ends e = make_ends();
  uint8_t next = 0xc0;
  kdp_host host = {.context = &next, .random = counting_random};
  kdp_wg_cookie_checker checker;
  kdp_wg_cookie_reply reply;
  kdp_wg_initiation initiation;
  hex_read(INITIATION, (uint8_t *)&initiation);
  kdp_wg_cookie_checker_set(&checker, e.b.public_key);
  expect_hex("0a2b733372bcb03d5dfdb1ed10f5db79e93fa09f2ed2c60d6d28d0db867176ee", checker.mac1_key, 32);
  assert_true(kdp_wg_mac1_valid(&checker, (uint8_t *)&initiation, sizeof initiation));
  assert_false(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &v4_source, &host, 5));
  /* The secret 20 21 ... 3f, and from then on the nonce c0 c1 ... d7. */
  for (size_t i = 0; i < 32; i++)
    checker.secret[i] = (uint8_t)(0x20 + i);
  next = 0xc0;
  kdp_wg_cookie_reply_create(&checker, initiation.macs.mac1, initiation.sender, &v4_source, &host, 6, &reply);
  expect_hex(
      "0300000044332211c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7497ec450c266eb7e8db6b1dec835514af390b48268e63"
      "12cc9d4863ebdd74a94",
      (uint8_t *)&reply, sizeof reply);
  /* The initiator opens it, and its next message has a MAC2 that the responder takes. */
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 7);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 8), KDP_OK);
  expect_hex("43e8afc193b0a02280b8727a5c7e75b3", e.to_b.value, 16);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 9);
  expect_hex("f53119275662fe8edc80f390e987ec28", initiation.macs.mac2, 16);
  assert_true(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &v4_source, &host, 10));
}

static void every_byte_of_both_macs_counts(void **state) {
  (void)state;
  ends e = make_ends();
  uint8_t next = 0;
  kdp_host host = {.context = &next, .random = counting_random};
  kdp_wg_cookie_checker checker;
  kdp_wg_cookie_reply reply;
  kdp_wg_initiation initiation;
  hex_read(INITIATION, (uint8_t *)&initiation);
  kdp_wg_cookie_checker_set(&checker, e.b.public_key);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
  kdp_wg_cookie_reply_create(&checker, initiation.macs.mac1, initiation.sender, &v4_source, &host, 1, &reply);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 1), KDP_OK);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
  for (size_t i = 0; i < sizeof initiation; i++) {
    ((uint8_t *)&initiation)[i] ^= 0x10;
    bool in_mac2 = i >= offsetof(kdp_wg_initiation, macs.mac2);
    assert_int_equal(kdp_wg_mac1_valid(&checker, (uint8_t *)&initiation, sizeof initiation), in_mac2);
    assert_false(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &v4_source, &host, 1));
    ((uint8_t *)&initiation)[i] ^= 0x10;
  }
}

static void a_cookie_is_for_one_address_and_port(void **state) {
  (void)state;
  ends e = make_ends();
  uint8_t next = 0;
  kdp_host host = {.context = &next, .random = counting_random};
  kdp_wg_cookie_checker checker;
  kdp_wg_cookie_reply reply;
  kdp_wg_initiation initiation;
  kdp_address v6_source = {.family = KDP_FAMILY_IPV6, .port = 51820, .bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 9}};
  kdp_address sources[] = {v4_source, v4_source, v4_source, v6_source, v6_source};
  sources[1].port++;
  sources[2].bytes[3]++;
  sources[4].bytes[15]++;
  hex_read(INITIATION, (uint8_t *)&initiation);
  kdp_wg_cookie_checker_set(&checker, e.b.public_key);
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    kdp_wg_cookie_start(&e.to_b, e.b.public_key);
    kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
    kdp_wg_cookie_reply_create(&checker, initiation.macs.mac1, initiation.sender, &sources[i], &host, 1, &reply);
    assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 1), KDP_OK);
    kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
    for (size_t j = 0; j < sizeof sources / sizeof sources[0]; j++)
      assert_int_equal(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &sources[j], &host, 1),
                       i == j);
  }
}

static void a_cookie_ends_with_its_time(void **state) {
  (void)state;
  ends e = make_ends();
  uint8_t next = 0;
  kdp_host host = {.context = &next, .random = counting_random};
  kdp_wg_cookie_checker checker;
  kdp_wg_cookie_reply reply;
  kdp_wg_initiation initiation;
  uint64_t start = 1000;
  hex_read(INITIATION, (uint8_t *)&initiation);
  kdp_wg_cookie_checker_set(&checker, e.b.public_key);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, start);
  kdp_wg_cookie_reply_create(&checker, initiation.macs.mac1, initiation.sender, &v4_source, &host, start, &reply);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, start), KDP_OK);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, start + 115 * KDP_SECOND - 1);
  assert_true(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &v4_source, &host,
                                start + 120 * KDP_SECOND - 1));
  /* The responder has a new secret. */
  assert_false(kdp_wg_mac2_valid(&checker, (uint8_t *)&initiation, sizeof initiation, &v4_source, &host,
                                 start + 120 * KDP_SECOND));
  /* The initiator stops a little earlier by itself. */
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, start + 115 * KDP_SECOND);
  uint8_t zero[16] = {0};
  assert_memory_equal(initiation.macs.mac2, zero, 16);
}

static void a_cookie_reply_counts_once_and_only_for_its_message(void **state) {
  (void)state;
  ends e = make_ends();
  uint8_t next = 0;
  kdp_host host = {.context = &next, .random = counting_random};
  kdp_wg_cookie_checker checker;
  kdp_wg_cookie_reply reply, other;
  kdp_wg_initiation initiation;
  hex_read(INITIATION, (uint8_t *)&initiation);
  kdp_wg_cookie_checker_set(&checker, e.b.public_key);
  /* Nothing was sent: nothing is awaited. */
  kdp_wg_cookie_reply_create(&checker, initiation.macs.mac1, initiation.sender, &v4_source, &host, 1, &reply);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 1), KDP_BAD_COOKIE);
  kdp_wg_macs_write(&e.to_b, (uint8_t *)&initiation, sizeof initiation, 1);
  uint8_t wrong[16] = {1};
  kdp_wg_cookie_reply_create(&checker, wrong, initiation.sender, &v4_source, &host, 1, &other);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &other, 1), KDP_BAD_COOKIE);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 1), KDP_OK);
  assert_int_equal(kdp_wg_cookie_consume(&e.to_b, e.b.public_key, &reply, 2), KDP_BAD_COOKIE);
  assert_int_equal(e.to_b.birth, 1);
}

static void messages_are_known_by_type_and_size(void **state) {
  (void)state;
  static const struct {
    uint32_t type, least, most;
  } kinds[] = {{1, 148, 148}, {2, 92, 92}, {3, 64, 64}, {4, 32, 65535}};
  uint8_t bytes[200] = {0};
  kdp_wg_message_type type;
  for (uint32_t size = 0; size < 4; size++)
    assert_int_equal(kdp_wg_classify(bytes, size, &type), KDP_TOO_SHORT);
  for (size_t i = 0; i < 4; i++) {
    kdp_store_le32(bytes, kinds[i].type);
    for (uint32_t size = 4; size <= sizeof bytes; size++)
      assert_int_equal(kdp_wg_classify(bytes, size, &type), size < kinds[i].least  ? KDP_TOO_SHORT
                                                            : size > kinds[i].most ? KDP_TOO_LONG
                                                                                   : KDP_OK);
    assert_int_equal(type, kinds[i].type);
    /* The three bytes behind the type are zero. */
    for (int at = 1; at < 4; at++) {
      bytes[at] = 1;
      assert_int_equal(kdp_wg_classify(bytes, kinds[i].least, &type), KDP_UNKNOWN_TYPE);
      bytes[at] = 0;
    }
  }
  kdp_store_le32(bytes, 0);
  assert_int_equal(kdp_wg_classify(bytes, 148, &type), KDP_UNKNOWN_TYPE);
  kdp_store_le32(bytes, 5);
  assert_int_equal(kdp_wg_classify(bytes, 148, &type), KDP_UNKNOWN_TYPE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rfc_7693_appendix_b_abc),
      cmocka_unit_test(rfc_7693_appendix_e_self_test),
      cmocka_unit_test(blake2s_reference_answers),
      cmocka_unit_test(blake2s_in_pieces_is_blake2s_of_the_whole),
      cmocka_unit_test(kdf_known_answers),
      cmocka_unit_test(hmac_known_answers),
      cmocka_unit_test(stamps_known_answers),
      cmocka_unit_test(the_low_bits_of_the_clock_do_not_show),
      cmocka_unit_test(stamps_rise_whatever_the_clock_does),
      cmocka_unit_test(handshake_messages_known_answers),
      cmocka_unit_test(no_bit_of_a_handshake_message_may_change),
      cmocka_unit_test(low_order_keys_are_refused),
      cmocka_unit_test(cookies_known_answers),
      cmocka_unit_test(every_byte_of_both_macs_counts),
      cmocka_unit_test(a_cookie_is_for_one_address_and_port),
      cmocka_unit_test(a_cookie_ends_with_its_time),
      cmocka_unit_test(a_cookie_reply_counts_once_and_only_for_its_message),
      cmocka_unit_test(messages_are_known_by_type_and_size),
  };
  return cmocka_run_group_tests_name("wireguard cryptography", tests, NULL, NULL);
}
