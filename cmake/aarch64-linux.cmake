# Cross-compiles for AArch64 Linux with what Debian packages on another machine: clang-19, lld, libc6-dev-arm64-cross and
# libstdc++-12-dev-arm64-cross; tests run in qemu-user. Libraries for AArch64 are looked for below IGNIS_SYSROOT only:
# scripts/check-aarch64.sh fills such a folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld")

set(IGNIS_SYSROOT "" CACHE PATH "Folder with AArch64 libraries, laid out like /")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES IGNIS_SYSROOT)
set(CMAKE_FIND_ROOT_PATH "${IGNIS_SYSROOT}" /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)  # Debian's folders of libraries
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${IGNIS_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${IGNIS_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig")

set(CMAKE_CROSSCOMPILING_EMULATOR
  "qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${IGNIS_SYSROOT}/usr/lib/aarch64-linux-gnu")
