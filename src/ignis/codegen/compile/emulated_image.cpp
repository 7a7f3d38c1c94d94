#include "ignis/codegen/compile/emulated_image.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace ignis::codegen::testing {

namespace fs = std::filesystem;

namespace {

/// The other side of the pipe, without a C library. Input: part, parts, count, then each buffer's size and bytes.
const char* const kHarness = R"(
typedef long i64;
void ENTRY(void* const* buffers, i64 part, i64 parts);
static i64 call(i64 number, i64 a, i64 b, i64 c) {
  register i64 x8 __asm__("x8") = number;
  register i64 x0 __asm__("x0") = a;
  register i64 x1 __asm__("x1") = b;
  register i64 x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
enum { kRead = 63, kWrite = 64, kExit = 93 };
static void get(void* at, i64 size) {
  for (i64 done = 0; done < size;) {
    i64 n = call(kRead, 0, (i64)at + done, size - done);
    if (n <= 0) call(kExit, 3, 0, 0);
    done += n;
  }
}
static void put(void* at, i64 size) {
  for (i64 done = 0; done < size;) {
    i64 n = call(kWrite, 1, (i64)at + done, size - done);
    if (n <= 0) call(kExit, 4, 0, 0);
    done += n;
  }
}
static _Alignas(64) char arena[64 << 20];
static void* buffers[4096];
static i64 sizes[4096];
void _start(void) {
  i64 head[3], used = 0;
  get(head, sizeof head);
  for (i64 i = 0; i < head[2]; ++i) {
    get(&sizes[i], 8);
    buffers[i] = arena + used;
    get(buffers[i], sizes[i]);
    used += (sizes[i] + 63) & ~63l;
  }
  ENTRY(buffers, head[0], head[1]);
  for (i64 i = 0; i < head[2]; ++i) put(buffers[i], sizes[i]);
  call(kExit, 0, 0, 0);
}
)";

bool runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void remove_folder(const fs::path* folder) {
  std::error_code ignored;
  fs::remove_all(*folder, ignored);
  delete folder;
}

}  // namespace

Result<EmulatedImage> EmulatedImage::load(const ProgramImage& image) {
  for (const char* const tool : {"qemu-aarch64", "clang-19", "ld.lld"}) {
    if (!runs(std::string(tool) + " --version"))
      return Error(ErrorCode::NotFound, std::string(tool) + " is not installed.");
  }
  std::string pattern = (fs::temp_directory_path() / "ignis-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    return Error(ErrorCode::Internal, "no temporary directory");
  std::shared_ptr<const fs::path> folder(new fs::path(pattern), remove_folder);
  std::ofstream(*folder / "k.o", std::ios::binary)
      .write(reinterpret_cast<const char*>(image.object.data()),
             static_cast<std::streamsize>(image.object.size()));
  std::ofstream(*folder / "main.c") << kHarness;
  const std::string in = "cd " + pattern + " && ";
  if (!runs(in + "clang-19 --target=aarch64-linux-gnu -O1 -ffreestanding -fno-builtin -DENTRY=" +
            image.name + " -c main.c -o main.o") ||
      !runs(in + "ld.lld -static -o program main.o k.o")) {
    return Error(ErrorCode::Internal, "The test program does not link.");
  }
  return EmulatedImage(std::move(folder));
}

Status EmulatedImage::run(std::vector<std::vector<std::byte>>& buffers, int64_t part,
                          int64_t parts) const {
  std::ofstream in(*folder_ / "in", std::ios::binary);
  const auto write = [&](const void* at, size_t size) {
    in.write(static_cast<const char*>(at), static_cast<std::streamsize>(size));
  };
  const int64_t head[3] = {part, parts, static_cast<int64_t>(buffers.size())};
  write(head, sizeof head);
  for (const auto& buffer : buffers) {
    const auto size_bytes = static_cast<int64_t>(buffer.size());
    write(&size_bytes, sizeof size_bytes);
    write(buffer.data(), buffer.size());
  }
  in.close();
  const std::string at = folder_->string();
  if (std::system(("timeout 60 qemu-aarch64 " + at + "/program < " + at + "/in > " + at + "/out")
                      .c_str()) != 0) {
    return Error(ErrorCode::Internal, "The emulated program fails.");
  }
  std::ifstream out(*folder_ / "out", std::ios::binary);
  for (auto& buffer : buffers) {
    out.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(buffer.size()));
    if (!out) return Error(ErrorCode::Internal, "The emulated program gives too little back.");
  }
  return Status::ok();
}

}  // namespace ignis::codegen::testing
