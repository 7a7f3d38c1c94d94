#pragma once

#include <span>
#include <string_view>

namespace ignis::tools {

/// A file of tools/ignis/page, as it was when the tool was built.
struct PageFile {
  std::string_view path;  ///< "/page.js"; "/" is index.html
  std::string_view type;  ///< "text/javascript; charset=utf-8"
  std::string_view contents;
};
std::span<const PageFile> page_files();

}  // namespace ignis::tools
