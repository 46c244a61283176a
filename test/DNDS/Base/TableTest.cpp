#include "DNDS/Base/Table.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(Table, AlignsNumbersRightAndTextsLeft) {
    Table table({4, -6, 3});
    table.text = "title\n";
    table.add({"rank", "host", "why"});
    table.add({"3", "n17", "longer"});
    table.add({"12"});
    EXPECT_EQ(table.text, "title\n"
                          "rank  host    why\n"
                          "   3  n17     longer\n"
                          "  12\n");
}

} // namespace
} // namespace DNDS
