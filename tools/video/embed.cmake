# cmake -DINPUT=portrait.jpg -DOUTPUT=portrait_data.cpp -DNAME=kPortraitJpeg -P embed.cmake
# Writes a C++ file that holds the input's bytes.
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
get_filename_component(name "${INPUT}" NAME)
file(WRITE "${OUTPUT}" "// Made from ${name} by embed.cmake.
#include \"tools/video/portrait_data.h\"

namespace ignis::tools {
namespace {
constexpr uint8_t kBytes[] = {
${bytes}};
}  // namespace

std::span<const std::byte> ${NAME}() { return std::as_bytes(std::span(kBytes)); }

}  // namespace ignis::tools
")
