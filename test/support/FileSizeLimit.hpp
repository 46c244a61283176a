/// @file FileSizeLimit.hpp
/// @brief A limit on the size of files, which stands for a full disk.
#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace DNDS::test {

/// No file of this process may become longer than `bytes` while it lives: a write beyond them fails with EFBIG.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit lowered{std::min(bytes, before_.rlim_max), before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &lowered);
    }
    FileSizeLimit(const FileSizeLimit &) = delete;
    FileSizeLimit &operator=(const FileSizeLimit &) = delete;
    ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

  private:
    rlimit before_{};
};

} // namespace DNDS::test
