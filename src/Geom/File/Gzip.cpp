#include "DNDS/Geom/File/Gzip.hpp"

#include "DNDS/Base/Error.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace DNDS::Geom {

namespace {

/// zlib seeks backwards by starting again, forwards by decompressing; readers therefore go forwards.
/// Reading forward costs O(bytes passed over), skipped ones included: each rank decompresses the file up to
/// the end of its share.
class ZlibContent final : public GzipContent {
  public:
    explicit ZlibContent(const std::string &path) : path_(path), file_(::gzopen(path.c_str(), "rb")) {
        DNDS_CHECK(file_ != nullptr, DataError, "{} cannot be opened: {}", path_, std::strerror(errno));
        ::gzbuffer(file_, 1U << 18U);
    }
    ZlibContent(const ZlibContent &) = delete;
    ZlibContent &operator=(const ZlibContent &) = delete;
    ~ZlibContent() override { ::gzclose(file_); }

    // Reads in sequence cost no seek: zlib's position is compared first.
    std::size_t read(index offset, char *into, std::size_t count) override {
        if (::gztell(file_) != offset && ::gzseek(file_, offset, SEEK_SET) != offset)
            check();
        // gzread counts in int, hence parts of 1 GiB. 0 is the end of the content or an error: check() tells them
        // apart.
        std::size_t done = 0;
        while (done < count) {
            const auto part = static_cast<unsigned>(std::min<std::size_t>(count - done, 1U << 30U));
            const int got = ::gzread(file_, into + done, part);
            if (got <= 0) {
                check();
                break;
            }
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

  private:
    /// Throws if zlib has found the file to be damaged; the end of the content is no error.
    void check() const {
        int code = Z_OK;
        const char *message = ::gzerror(file_, &code);
        DNDS_CHECK(code != Z_BUF_ERROR, DataError, "{} is damaged: its compressed content ends early", path_);
        DNDS_CHECK(code == Z_OK || code == Z_STREAM_END, DataError, "{} cannot be decompressed: {}", path_,
                   code == Z_ERRNO ? std::strerror(errno) : message);
    }

    std::string path_;
    gzFile file_;
};

} // namespace

std::unique_ptr<GzipContent> openGzip(const std::string &path) { return std::make_unique<ZlibContent>(path); }

// The size is known in advance: a block of any other size is damaged.
bool inflateBlock(const std::string &, std::string_view compressed, std::span<char> into) {
    uLongf size = into.size();
    return ::uncompress(reinterpret_cast<Bytef *>(into.data()), &size,
                        reinterpret_cast<const Bytef *>(compressed.data()), compressed.size()) == Z_OK &&
           size == into.size();
}

} // namespace DNDS::Geom
