/// @file Lifetime.hpp
/// @brief Tells holders of a reference that the object was destroyed.
#pragma once

#include <memory>

namespace DNDS {

/// A member that tells of the end of its object. Copies and moves leave each object its own: it belongs to the place,
/// not to the contents. Local; not thread-safe. Allocates a byte when it is first watched.
class Lifetime {
  public:
    Lifetime() noexcept = default;
    Lifetime(const Lifetime & /*other*/) noexcept {}
    Lifetime &operator=(const Lifetime & /*other*/) noexcept { return *this; }
    ~Lifetime() = default;

    /// Expires when the object is destroyed.
    std::weak_ptr<const void> watch() const {
        if (!token_)
            token_ = std::make_shared<char>();
        return token_;
    }

  private:
    /// Made by the first `watch`; the last reference to it ends with the object.
    mutable std::shared_ptr<const void> token_;
};

} // namespace DNDS
