# Writes a source file with the version and a digest of the sources that make code: a program made by others must not be
# taken for one of ours, and the version alone does not change from one commit to the next.
#
#   cmake -D LIST=… -D ROOT=… -D VERSION=… -D OUT=… -P generator_id.cmake

file(STRINGS "${LIST}" files)
set(all "")
foreach(file ${files})
  file(SHA256 "${ROOT}/${file}" digest)
  string(APPEND all "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING "${digest}" 0 16 digest)
file(WRITE "${OUT}" "#include \"ignis/engine/program_key.h\"

namespace ignis::engine {

const char* generator_id() { return \"${VERSION} ${digest}\"; }

}  // namespace ignis::engine
")
