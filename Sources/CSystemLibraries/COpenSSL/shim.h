#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* A list of parameters points to names, strings and bytes until the key is made of it, longer than Swift lends any of
   them to a call. NULL: the parameters are wrong, or there is no memory. */
static inline EVP_PKEY *copenssl_public_key(const char *kind, OSSL_PARAM_BLD *builder) {
  OSSL_PARAM *list = OSSL_PARAM_BLD_to_param(builder);
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(0, kind, 0);
  EVP_PKEY *key = 0;
  if (list && context && EVP_PKEY_fromdata_init(context) == 1)
    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, list);
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(list);
  return key;
}

/* `point` is 65 bytes: 4, x, y. */
static inline EVP_PKEY *copenssl_p256_public_key(const unsigned char *point) {
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  EVP_PKEY *key = 0;
  if (builder && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
      OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 65) == 1)
    key = copenssl_public_key("EC", builder);
  OSSL_PARAM_BLD_free(builder);
  return key;
}

static inline EVP_PKEY *copenssl_rsa_public_key(const BIGNUM *modulus, const BIGNUM *exponent) {
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  EVP_PKEY *key = 0;
  if (builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
    key = copenssl_public_key("RSA", builder);
  OSSL_PARAM_BLD_free(builder);
  return key;
}
