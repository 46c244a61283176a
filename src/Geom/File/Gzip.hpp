/// @file Gzip.hpp
/// @brief The content of compressed files (gzip), and of compressed parts of files (zlib).
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace DNDS::Geom {

/// The content of a compressed file. All functions are Local.
class GzipContent {
  public:
    GzipContent() = default;
    GzipContent(const GzipContent &) = delete;
    GzipContent &operator=(const GzipContent &) = delete;
    virtual ~GzipContent() = default;

    /// As `MeshFile::read`. Throws DataError if the file is damaged or ends early.
    virtual std::size_t read(index offset, char *into, std::size_t count) = 0;
};

/// Defined in Gzip.cpp or, for builds without zlib, in GzipAbsent.cpp. Throws DataError with the path if the file
/// cannot be opened, NotBuiltError without zlib. Local.
std::unique_ptr<GzipContent> openGzip(const std::string &path);

/// Decompresses data in zlib's format that was read from the file `path`; false if it is damaged or its size is not
/// that of `into`. Local. NotBuiltError, with the path, without zlib.
bool inflateBlock(const std::string &path, std::string_view compressed, std::span<char> into);

} // namespace DNDS::Geom
