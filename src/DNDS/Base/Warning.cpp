#include "DNDS/Base/Warning.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace DNDS {

namespace {

struct Sink {
    std::mutex mutex;
    std::shared_ptr<const WarningSink> call;
};

/// Never destroyed: objects that outlive main warn, too.
Sink &sink() {
    static Sink *const made = new Sink;
    return *made;
}

} // namespace

void setWarningSink(WarningSink call) {
    auto given = call ? std::make_shared<const WarningSink>(std::move(call)) : nullptr;
    const std::lock_guard lock(sink().mutex);
    sink().call.swap(given); // the old one ends after the lock
}

void warn(std::string_view text) noexcept {
    try {
        std::shared_ptr<const WarningSink> call;
        {
            const std::lock_guard lock(sink().mutex);
            call = sink().call;
        }
        if (call)
            return (*call)(text);
    } catch (...) { // the program's own
        return;
    }
    // In one piece, which ranks that write at the same time do not mix; without memory of its own.
    std::array<char, 2048> line{};
    const int length =
        std::snprintf(line.data(), line.size(), "DNDS: %.*s\n", static_cast<int>(text.size()), text.data());
    if (length > 0 && static_cast<std::size_t>(length) < line.size())
        std::fwrite(line.data(), 1, static_cast<std::size_t>(length), stderr);
    else
        std::fprintf(stderr, "DNDS: %.*s\n", static_cast<int>(text.size()), text.data());
}

} // namespace DNDS
