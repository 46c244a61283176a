#include "DNDS/Mpi/Communicator.hpp"

#include "ThrowsOnAll.hpp"

#include <climits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace DNDS {
namespace {

static_assert(!std::is_copy_constructible_v<Datatype> && std::is_nothrow_move_constructible_v<Datatype>);

MPI_Count sizeOf(MPI_Datatype type) {
    MPI_Count bytes = -1;
    MPI_Type_size_x(type, &bytes);
    return bytes;
}

TEST(MpiTypeOf, HasTheSizeOfTheCppType) {
    const auto check = []<class T>(T) { EXPECT_EQ(sizeOf(mpiTypeOf<T>()), static_cast<MPI_Count>(sizeof(T))); };
    check(char{});
    check(bool{});
    check(short{});
    check(static_cast<unsigned short>(0));
    check(int{});
    check(0U);
    check(0L);
    check(0UL);
    check(0LL);
    check(0ULL);
    check(static_cast<signed char>(0));
    check(static_cast<unsigned char>(0));
    check(float{});
    check(double{});
    check(static_cast<long double>(0));
}

TEST(ByteCount, IsPlainBytesAsLongAsAnIntCounts) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{INT_MAX}}) {
        const ByteCount size(bytes);
        EXPECT_EQ(size.type(), MPI_BYTE);
        EXPECT_EQ(static_cast<std::size_t>(size.count()), bytes);
    }
}

TEST(ByteCount, IsExactBeyondTwoGigabytes) {
    constexpr std::size_t giga = std::size_t{1} << 30;
    for (const std::size_t bytes : {std::size_t{INT_MAX} + 1, 2 * giga + 1, 3 * giga - 1, 4 * giga, 5 * giga + 12345}) {
        const ByteCount size(bytes);
        EXPECT_EQ(size.count(), 1);
        EXPECT_EQ(sizeOf(size.type()), static_cast<MPI_Count>(bytes));
        MPI_Count lower = -1;
        MPI_Count extent = -1;
        MPI_Type_get_extent_x(size.type(), &lower, &extent);
        EXPECT_EQ(lower, 0);
        EXPECT_EQ(extent, static_cast<MPI_Count>(bytes));
    }
}

TEST(Datatype, LargeBlocksKeepTheirOffsetsAndSizes) {
    constexpr std::size_t giga = std::size_t{1} << 30;
    const std::vector<ByteBlock> blocks{{7 * giga, 3 * giga + 5}, {100, 17}, {20 * giga, 0}};
    const Datatype type = Datatype::fromBlocks(blocks);
    EXPECT_EQ(sizeOf(type.handle()), static_cast<MPI_Count>(3 * giga + 5 + 17));
    MPI_Count lower = -1;
    MPI_Count extent = -1;
    MPI_Type_get_true_extent_x(type.handle(), &lower, &extent);
    EXPECT_EQ(lower, 100);
    EXPECT_EQ(extent, static_cast<MPI_Count>(10 * giga + 5 - 100));
}

TEST(Datatype, BlocksArePackedInTheirOrder) {
    std::vector<unsigned char> bytes(64);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
    const std::vector<ByteBlock> blocks{{40, 3}, {0, 2}, {41, 1}, {5, 0}, {2, 4}};
    const Datatype type = Datatype::fromBlocks(blocks);
    std::vector<unsigned char> packed(10);
    int position = 0;
    MPI_Pack(bytes.data(), 1, type.handle(), packed.data(), 10, &position, MPI_COMM_SELF);
    EXPECT_EQ(packed, (std::vector<unsigned char>{40, 41, 42, 0, 1, 41, 2, 3, 4, 5}));
}

TEST(Datatype, NoBlocksAreAnEmptyType) { EXPECT_EQ(sizeOf(Datatype::fromBlocks({}).handle()), 0); }

TEST(Datatype, MovesLeaveNothingBehind) {
    const ByteBlock block{0, 8};
    Datatype from = Datatype::fromBlocks({&block, 1});
    Datatype to = std::move(from);
    EXPECT_EQ(from.handle(), MPI_DATATYPE_NULL); // NOLINT: that is what is tested
    EXPECT_EQ(sizeOf(to.handle()), 8);
    from = std::move(to);
    EXPECT_EQ(sizeOf(from.handle()), 8);
}

} // namespace
} // namespace DNDS
