/// @file Datatype.hpp
/// @brief MPI datatypes: the predefined one of a C++ type, and an owner for derived ones.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Check.hpp"

#include <mpi.h>

#include <complex>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace DNDS {

/// The predefined MPI datatype of the arithmetic type `T`. Local.
template <class T>
MPI_Datatype mpiTypeOf() {
    static_assert(std::is_arithmetic_v<T>,
                  "MPI has predefined datatypes for arithmetic types only; send others as bytes");
    if constexpr (std::is_same_v<T, double>)
        return MPI_DOUBLE;
    else if constexpr (std::is_same_v<T, float>)
        return MPI_FLOAT;
    else if constexpr (std::is_same_v<T, long double>)
        return MPI_LONG_DOUBLE;
    else if constexpr (std::is_same_v<T, bool>)
        return MPI_CXX_BOOL;
    else if constexpr (std::is_same_v<T, char>)
        return MPI_CHAR;
    else if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 8 ? MPI_INT64_T : sizeof(T) == 4 ? MPI_INT32_T : sizeof(T) == 2 ? MPI_INT16_T : MPI_INT8_T;
    else
        return sizeof(T) == 8   ? MPI_UINT64_T
               : sizeof(T) == 4 ? MPI_UINT32_T
               : sizeof(T) == 2 ? MPI_UINT16_T
                                : MPI_UINT8_T;
}

/// A run of bytes in memory.
struct ByteBlock {
    std::size_t offset; ///< from a base address that the user of the block knows
    std::size_t bytes;
};

/// Owns a committed derived MPI datatype. Move-only; frees the type unless MPI is already finalized.
class Datatype {
  public:
    Datatype() = default;
    Datatype(Datatype &&other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
    Datatype &operator=(Datatype &&other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    Datatype(const Datatype &) = delete;
    Datatype &operator=(const Datatype &) = delete;
    ~Datatype();

    /// Blocks of bytes at their offsets, sent as one element. Local. Cost O(blocks). Any total size: blocks beyond 2^31
    /// bytes are split into large chunks.
    static Datatype fromBlocks(std::span<const ByteBlock> blocks);

    /// The datatype, for MPI calls while this lives; MPI_DATATYPE_NULL if it was moved from.
    MPI_Datatype handle() const noexcept { return type_; }

  private:
    explicit Datatype(MPI_Datatype type) : type_(type) {}

    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// `bytes` contiguous bytes as the (count, datatype) pair of an MPI call, for any size.
/// Up to 2^31 - 1 bytes this is plain MPI_BYTE; beyond, a derived type is made (MPI counts are `int` before MPI 4).
class ByteCount {
  public:
    /// Makes the pair, and a derived type where it takes one. Local.
    explicit ByteCount(std::size_t bytes);

    /// The pair. The datatype is valid as long as this.
    int count() const noexcept { return count_; }
    MPI_Datatype type() const noexcept { return large_.handle() == MPI_DATATYPE_NULL ? MPI_BYTE : large_.handle(); }

  private:
    /// Bytes of MPI_BYTE, or one element of `large_`, which is empty otherwise.
    int count_ = 0;
    Datatype large_;
};

} // namespace DNDS
