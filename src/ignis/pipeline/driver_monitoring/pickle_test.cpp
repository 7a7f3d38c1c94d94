#include "ignis/pipeline/driver_monitoring/pickle.h"

#include "ignis/pipeline/driver_monitoring/slices.h"
#include "ignis/pipeline/driver_monitoring/test_slice_maps.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

namespace ignis::pipeline {
namespace {

using ignis::testing::test_seed;

using namespace std::string_literals;  // "\0…"s

const std::vector<NamedSlice> kSmall = {{"a", 0, 3}, {"b", 3, 70000}, {"tail", -2, std::nullopt}};

TEST(Pickle, ReadsAMapOfSlicesInEveryProtocol) {
  int protocol = 0;
  for (const std::string_view text : testing::kSmallMaps) {
    SCOPED_TRACE(protocol++);
    const auto slices = read_slice_map(text);
    ASSERT_TRUE(slices) << slices.error().to_string();
    EXPECT_EQ(*slices, kSmall);
  }
}

TEST(Pickle, ReadsTheLayoutOfTheContract) {
  const auto slices = read_slice_map(testing::kSliceMap553);
  ASSERT_TRUE(slices) << slices.error().to_string();
  EXPECT_EQ(*slices, *default_slices(553));
}

TEST(Pickle, ReadsBase64WithAndWithoutLineBreaks) {
  EXPECT_EQ(*decode_base64("SWdu\naXM="), "Ignis");
  EXPECT_EQ(*decode_base64("SWduaXM="), "Ignis");
  EXPECT_EQ(*decode_base64("SWdu\r\naQ==\n"), "Igni");
  EXPECT_EQ(*decode_base64("+/8="), "\xfb\xff");
  EXPECT_EQ(*decode_base64(""), "");
  for (const char* text : {"S", "SW", "SWd", "SW=d", "SWd==", "S===", "====", "SWd=SWdu", "SW-u"}) {
    const auto bytes = decode_base64(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().reason(), "SliceMap");
  }
  EXPECT_FALSE(decode_base64(std::string(size_t{2} << 20, 'A')));
}

// Python's own notation of each is given; none of it is ever executed.
TEST(Pickle, RefusesEverythingElse) {
  const struct {
    const char* what;
    std::string bytes;
  } cases[] = {
      {"nothing", ""},
      {"no end", "}"},
      {"no value", "."},
      {"a number", "K\x01."},
      {"a global that runs a command", "cos\nsystem\n(S'true'\ntR."},
      {"the same by text", "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."},
      {"a builtin other than slice", "c__builtin__\neval\n."},
      {"slice of another module", "cos\nslice\n."},
      {"a list", "]."},
      {"a list in the map",
       "}\x8c\x01"
       "a]s."},
      {"a map in the map",
       "}\x8c\x01"
       "a}s."},
      {"a number in the map",
       "}\x8c\x01"
       "aK\x05s."},
      {"a text in the map",
       "}\x8c\x01"
       "a\x8c\x01"
       "bs."},
      {"a tuple in the map",
       "}\x8c\x01"
       "aK\x01\x85s."},
      {"the bare type in the map",
       "}\x8c\x01"
       "ac__builtin__\nslice\ns."},
      {"a number as name",
       "}K\x05"
       "c__builtin__\nslice\n(K\x01K\x02NtRs."},
      {"a float", "G\0\0\0\0\0\0\0\0."s},
      {"bytes",
       "C\x01"
       "a."},
      {"a boolean", "\x88."},
      {"a boolean of protocol 0", "I01\n."},
      {"a set", "\x8f."},
      {"a persistent id", "P1\n."},
      {"an extension", "\x82\x01."},
      {"an object's state", "}}b."},
      {"an instance", "(i__builtin__\nslice\n."},
      {"a new object", "c__builtin__\nslice\n)\x81."},
      {"protocol 6", "\x80\x06}."},
      {"a step",
       "}\x8c\x01"
       "ac__builtin__\nslice\n(K\x01K\x02K\x03tRs."},
      {"a slice of two",
       "}\x8c\x01"
       "ac__builtin__\nslice\n(K\x01K\x02tRs."},
      {"a slice of four",
       "}\x8c\x01"
       "ac__builtin__\nslice\n(K\x01K\x02NNtRs."},
      {"a slice of text",
       "}\x8c\x01"
       "ac__builtin__\nslice\n(\x8c\x01xK\x02NtRs."},
      {"an integer of nine bytes", "\x8a\x09\1\1\1\1\1\1\1\1\1."},
      {"an integer beyond 64 bits", "I99999999999999999999\n."},
      {"a text past the end",
       "\x8c\xff"
       "a."},
      {"a text of 2^64 - 1 bytes",
       "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
       "a."},
      {"a memo index of 2^32 - 1", "}r\xff\xff\xff\xff."},
      {"a value that was never stored", "h\x07."},
      {"items without a map", "K\x01K\x02K\x03s."},
      {"items without a mark", "}u."},
      {"a name without a value",
       "}(\x8c\x01"
       "au."},
      {"two of one name",
       "}(\x8c\x01"
       "ac__builtin__\nslice\n(K\x01K\x02NtR\x8c\x01"
       "ac__builtin__\nslice\n(K\x01K\x02NtRu."},
      {"an empty name", "}\x8c\0c__builtin__\nslice\n(K\x01K\x02NtRs."s},
      {"a name with a line feed", "}\x8c\x01\nc__builtin__\nslice\n(K\x01K\x02NtRs."},
      {"something behind the end", "}.}"},
      {"two values", "}K\x01."},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const auto slices = read_slice_pickle(c.bytes);
    ASSERT_FALSE(slices);
    EXPECT_EQ(slices.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(slices.error().reason(), "SliceMap");
    EXPECT_LT(slices.error().message().size(), 300u);
  }
  EXPECT_TRUE(read_slice_pickle("}."));
  EXPECT_TRUE(
      read_slice_pickle("}\x8c\x01"
                        "ac__builtin__\nslice\n(K\x01K\x02NtRs."));
}

// Each of these asks for much of something: the answer comes at once and takes no memory.
TEST(Pickle, BoundsWhatAFileMayAskFor) {
  EXPECT_FALSE(read_slice_pickle(std::string(1 << 20, '(')));
  EXPECT_FALSE(read_slice_pickle(std::string(1 << 20, 'N')));
  EXPECT_FALSE(read_slice_pickle(")" + std::string(1 << 20, '\x85')));
  EXPECT_FALSE(
      read_slice_pickle("\x8c\xff" + std::string(255, 'x') + std::string(1 << 20, '\x94')));
  std::string many = "}";
  for (int i = 0; i < 3000; ++i) {
    many += "\x8c\x04" + std::to_string(1000 + i) + "c__builtin__\nslice\n(K\x01K\x02NtRs";
  }
  const auto slices = read_slice_pickle(many + ".");
  ASSERT_FALSE(slices);
  EXPECT_NE(slices.error().message().find("2048"), std::string::npos);
}

// Mutants of good files: none crashes, and what is read is a map of slices.
TEST(Pickle, SurvivesHostileBytes) {
  std::mt19937_64 rng(test_seed());
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(test_seed()));
  std::vector<std::string> good;
  for (const std::string_view text : testing::kSmallMaps) good.push_back(*decode_base64(text));
  good.push_back(*decode_base64(testing::kSliceMap553));
  const std::string opcodes =
      ".(}dsu)tNKMJIL\x8a\x8c\x8dUTXVSpqr\x94ghjc\x93R\x80\x95\x85\x86\x87\x88]";
  int accepted = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string bytes = good[rng() % good.size()];
    const size_t changes = 1 + rng() % 4;
    for (size_t k = 0; k < changes && !bytes.empty(); ++k) {
      const size_t at = rng() % bytes.size();
      switch (rng() % 5) {
        case 0: bytes[at] = static_cast<char>(rng()); break;
        case 1: bytes[at] = opcodes[rng() % opcodes.size()]; break;
        case 2: bytes.erase(at, 1 + rng() % 8); break;
        case 3: bytes.insert(at, 1, opcodes[rng() % opcodes.size()]); break;
        default: bytes.insert(at, bytes.substr(rng() % bytes.size(), rng() % 16));
      }
    }
    const auto slices = read_slice_pickle(bytes);
    if (!slices) {
      ASSERT_EQ(slices.error().reason(), "SliceMap");
      continue;
    }
    ++accepted;
    for (const NamedSlice& slice : *slices) ASSERT_FALSE(slice.name.empty());
    (void)make_head_table(*slices, 553);
  }
  EXPECT_GT(accepted, 100) << "Nearly all mutants are refused: what is accepted is not looked at.";
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(rng() % 64, '\0');
    for (char& c : bytes) {
      c = rng() % 2 != 0 ? opcodes[rng() % opcodes.size()] : static_cast<char>(rng());
    }
    (void)read_slice_pickle(bytes);
    (void)read_slice_map(bytes);
  }
}

}  // namespace
}  // namespace ignis::pipeline
