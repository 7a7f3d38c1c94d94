# Installs one kind of the libraries to an empty prefix, builds the consumer with find_package and with pkg-config,
# runs both, and holds the README's example against the consumer's source.
#
#   cmake -D KIND=shared|static -D BUILD_DIR=… -D SOURCE_DIR=… -D CXX=… -D GENERATOR=… -D LIBDIR=… -P consumer_test.cmake

set(ENV{IGNIS_CACHE} off)  # of whoever runs the tests
set(work "${BUILD_DIR}/packaging/consumer-${KIND}")
set(prefix "${work}/prefix")
file(REMOVE_RECURSE "${work}")

function(run_or_fail)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The model of the consumers adds 1 to each of two floats.
function(expect_answer program model)
  run_or_fail(${program} "${model}")
  if(NOT output STREQUAL "[2] begins with 1\n")
    message(FATAL_ERROR "${program} printed '${output}'")
  endif()
endfunction()

file(READ "${SOURCE_DIR}/packaging/consumer/main.cpp" example)
file(READ "${SOURCE_DIR}/README.md" readme)
string(FIND "${readme}" "${example}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "README.md does not hold packaging/consumer/main.cpp word for word.")
endif()

run_or_fail(${CMAKE_COMMAND} --install "${BUILD_DIR}" --component ignis-${KIND} --prefix "${prefix}")
# No header that is installed may need one that is not, nor a third-party one: the consumer has nothing else.
run_or_fail(${CMAKE_COMMAND} -S "${SOURCE_DIR}/packaging/consumer" -B "${work}/build" -G "${GENERATOR}"
  -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${prefix})
run_or_fail(${CMAKE_COMMAND} --build "${work}/build")
expect_answer("${work}/build/consumer" "${SOURCE_DIR}/packaging/consumer/add_one.onnx")
run_or_fail("${BUILD_DIR}/tools/ignis/ignis" compile "${SOURCE_DIR}/packaging/consumer/add_one.onnx" -o "${work}/add_one.ignis")
expect_answer("${work}/build/vehicle" "${work}/add_one.ignis")

set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
set(pkg_options --cflags --libs ignis-compiler)
if(KIND STREQUAL "static")
  list(PREPEND pkg_options --static)
endif()
execute_process(COMMAND pkg-config ${pkg_options} OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags)
run_or_fail(${CXX} -std=c++20 "${SOURCE_DIR}/packaging/consumer/main.cpp" -o "${work}/consumer-pkg-config" ${flags}
  "-Wl,-rpath,${prefix}/${LIBDIR}")
expect_answer("${work}/consumer-pkg-config" "${SOURCE_DIR}/packaging/consumer/add_one.onnx")

# A vehicle carries libignis alone: neither the compiler nor LLVM may come with it, not even linked in.
set(carried "${work}/build/vehicle")
if(KIND STREQUAL "shared")
  list(APPEND carried "${prefix}/${LIBDIR}/libignis.so")
endif()
foreach(file ${carried})
  foreach(dynamic "" --dynamic)
    execute_process(COMMAND nm --demangle ${dynamic} "${file}" OUTPUT_VARIABLE symbols ERROR_QUIET)
    if(symbols MATCHES "(LLVM[A-Za-z]+|ignis::(codegen|schedule|onnx|tensor|engine|interp)::[A-Za-z_]+|ignis::Session)")
      message(FATAL_ERROR "${file} holds ${CMAKE_MATCH_1}.")
    endif()
  endforeach()
endforeach()
if(KIND STREQUAL "shared")
  execute_process(COMMAND readelf --dynamic "${prefix}/${LIBDIR}/libignis.so" OUTPUT_VARIABLE dynamic
    COMMAND_ERROR_IS_FATAL ANY)
  if(dynamic MATCHES "NEEDED[^\n]*(LLVM|ignis-compiler|png)")
    message(FATAL_ERROR "libignis.so needs ${CMAKE_MATCH_1}.")
  endif()
endif()
