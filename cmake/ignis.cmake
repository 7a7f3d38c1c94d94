# One target per folder of src/ignis, named ignis_<folder> with the alias ignis::<folder>.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# Checked invariants stay on in every build; NDEBUG only drops IGNIS_DCHECK.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
# -O3 costs build time and gains nothing: what is fast at run time is generated code.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(IGNIS_BUILD_TESTS)
  enable_testing()
  if(CMAKE_CROSSCOMPILING)
    add_subdirectory(/usr/src/googletest/googletest "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)  # Debian: googletest
  else()
    find_package(GTest REQUIRED)
  endif()
  include(GoogleTest)
endif()

function(ignis_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms in std::string, GCC bug 105651
  endif()
  if(IGNIS_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(IGNIS_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${IGNIS_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${IGNIS_SANITIZE})
  endif()
  if(IGNIS_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# ignis_library(ir PUBLIC_HEADERS a.h SOURCES a.cpp DEPENDS ignis::base [PRIVATE_DEPENDS lib])
function(ignis_library name)
  cmake_parse_arguments(ARG "" "" "PUBLIC_HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target "ignis_${name}")
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(ignis::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${CMAKE_SOURCE_DIR}/src" FILES ${ARG_PUBLIC_HEADERS})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>")
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  ignis_compile_options(${target})
  # What packaging/ makes the installed libraries from.
  set_property(GLOBAL APPEND PROPERTY IGNIS_LIBRARIES ${name})
  foreach(header ${ARG_PUBLIC_HEADERS})
    set_property(GLOBAL APPEND PROPERTY IGNIS_HEADERS_${name} "${CMAKE_CURRENT_SOURCE_DIR}/${header}")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY IGNIS_LINKS_${name} ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS})
endfunction()

# ignis_test(ir_test SOURCES a_test.cpp DEPENDS ignis::ir): one GoogleTest program, found by ctest.
function(ignis_test name)
  if(NOT IGNIS_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  ignis_compile_options(${name})
  target_compile_definitions(${name} PRIVATE IGNIS_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  # scripts/run-tests.sh counts the cases in these files.
  set_tests_properties(${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${name}.xml")
endfunction()
