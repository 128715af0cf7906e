/* Bounded reader and writer: they cannot go past their end. A failed read leaves the value zero and the cursor failed;
   check once, at the end, with kdp_reader_ok. And loads and stores of known size, for code that has checked already. */
#ifndef KDP_CORE_BYTES_H
#define KDP_CORE_BYTES_H
#include <string.h>

#include "kdp/base.h"

typedef struct kdp_reader {
  const uint8_t *at, *end;
  bool failed;
} kdp_reader;

static inline kdp_reader kdp_reader_make(const void *bytes, size_t size) {
  return (kdp_reader){bytes, (const uint8_t *)bytes + size, false};
}
static inline size_t kdp_reader_left(const kdp_reader *reader) {
  return (size_t)(reader->end - reader->at);
}
static inline bool kdp_reader_ok(const kdp_reader *reader) {
  return !reader->failed;
}
/* `size` bytes in place, or NULL. */
static inline const uint8_t *kdp_read_bytes(kdp_reader *reader, size_t size) {
  if (reader->failed || kdp_reader_left(reader) < size) {
    reader->failed = true;
    return NULL;
  }
  const uint8_t *bytes = reader->at;
  reader->at += size;
  return bytes;
}

static inline uint16_t kdp_load_be16(const void *at) {
  const uint8_t *b = at;
  return (uint16_t)((unsigned)b[0] << 8 | b[1]);
}
static inline uint32_t kdp_load_be32(const void *at) {
  uint32_t v;
  memcpy(&v, at, 4);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  v = __builtin_bswap32(v);
#endif
  return v;
}
static inline uint64_t kdp_load_be64(const void *at) {
  return (uint64_t)kdp_load_be32(at) << 32 | kdp_load_be32((const uint8_t *)at + 4);
}
static inline uint32_t kdp_load_le32(const void *at) {
  uint32_t v;
  memcpy(&v, at, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap32(v);
#endif
  return v;
}
static inline uint64_t kdp_load_le64(const void *at) {
  return (uint64_t)kdp_load_le32((const uint8_t *)at + 4) << 32 | kdp_load_le32(at);
}
static inline void kdp_store_be16(void *at, uint16_t v) {
  ((uint8_t *)at)[0] = (uint8_t)(v >> 8);
  ((uint8_t *)at)[1] = (uint8_t)v;
}
static inline void kdp_store_be32(void *at, uint32_t v) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  v = __builtin_bswap32(v);
#endif
  memcpy(at, &v, 4);
}
static inline void kdp_store_be64(void *at, uint64_t v) {
  kdp_store_be32(at, (uint32_t)(v >> 32));
  kdp_store_be32((uint8_t *)at + 4, (uint32_t)v);
}
static inline void kdp_store_le32(void *at, uint32_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap32(v);
#endif
  memcpy(at, &v, 4);
}
static inline void kdp_store_le64(void *at, uint64_t v) {
  kdp_store_le32(at, (uint32_t)v);
  kdp_store_le32((uint8_t *)at + 4, (uint32_t)(v >> 32));
}

static inline uint8_t kdp_read_u8(kdp_reader *reader) {
  const uint8_t *b = kdp_read_bytes(reader, 1);
  return b ? b[0] : 0;
}
static inline uint16_t kdp_read_be16(kdp_reader *reader) {
  const uint8_t *b = kdp_read_bytes(reader, 2);
  return b ? kdp_load_be16(b) : 0;
}
static inline uint32_t kdp_read_be32(kdp_reader *reader) {
  const uint8_t *b = kdp_read_bytes(reader, 4);
  return b ? kdp_load_be32(b) : 0;
}
static inline uint32_t kdp_read_le32(kdp_reader *reader) {
  const uint8_t *b = kdp_read_bytes(reader, 4);
  return b ? kdp_load_le32(b) : 0;
}
static inline uint64_t kdp_read_le64(kdp_reader *reader) {
  const uint8_t *b = kdp_read_bytes(reader, 8);
  return b ? kdp_load_le64(b) : 0;
}

typedef struct kdp_writer {
  uint8_t *at, *end;
  bool failed;
} kdp_writer;

static inline kdp_writer kdp_writer_make(void *bytes, size_t size) {
  return (kdp_writer){bytes, (uint8_t *)bytes + size, false};
}
/* Room for `size` bytes, to be filled by the caller, or NULL. */
static inline uint8_t *kdp_write_room(kdp_writer *writer, size_t size) {
  if (writer->failed || (size_t)(writer->end - writer->at) < size) {
    writer->failed = true;
    return NULL;
  }
  uint8_t *room = writer->at;
  writer->at += size;
  return room;
}
static inline void kdp_write_copy(kdp_writer *writer, const void *bytes, size_t size) {
  uint8_t *room = kdp_write_room(writer, size);
  if (room && size) memcpy(room, bytes, size);
}
#endif
