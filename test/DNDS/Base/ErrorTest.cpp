#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {
namespace {

/// Sets the rank that errors name, and takes it back.
class WithRank {
  public:
    explicit WithRank(int rank) : before_(errorRank()) { setErrorRank(rank); }
    WithRank(const WithRank &) = delete;
    WithRank &operator=(const WithRank &) = delete;
    ~WithRank() { setErrorRank(before_); }

  private:
    int before_;
};

template <class Exception, class Call>
Exception caught(Call &&call) {
    try {
        call();
    } catch (const Exception &error) {
        return error;
    }
    throw std::logic_error("nothing of that type was thrown");
}

const std::vector<ErrorKind> allKinds{ErrorKind::Argument, ErrorKind::Index,   ErrorKind::Layout, ErrorKind::State,
                                      ErrorKind::Stale,    ErrorKind::Data,    ErrorKind::Memory, ErrorKind::Mpi,
                                      ErrorKind::Peer,     ErrorKind::NotBuilt};

TEST(Error, NoRankIsNamedBeforeOneIsKnown) {
    ASSERT_EQ(errorRank(), -1);
    const auto error = caught<Error>([] { throwError(ErrorKind::Data, "odd"); });
    EXPECT_EQ(error.rank(), -1);
    EXPECT_EQ(std::string(error.what()).find(" on rank"), std::string::npos) << error.what();
}

TEST(Error, WhatNamesKindRankTextFileLineAndFunction) {
    const WithRank rank(3);
    const SourceLocation here = SourceLocation::current();
    const auto error = caught<IndexError>([&] { throw IndexError("row 7 is missing", here); });
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("IndexError on rank 3: row 7 is missing [")) << what;
    EXPECT_NE(what.find("[ErrorTest.cpp:" + std::to_string(here.line) + " in TestBody]"), std::string::npos) << what;
    EXPECT_EQ(error.message(), "row 7 is missing");
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_EQ(error.rank(), 3);
    EXPECT_EQ(error.where().line, here.line);
}

TEST(Error, WhatLeavesOutArgumentsOfTemplates) {
    const auto generic = [](const auto &...values) { DNDS_CHECK(sizeof...(values) > 9, ArgumentError, "too few"); };
    const std::vector<std::vector<std::string>> lists;
    const std::string what = caught<ArgumentError>([&] { generic(lists, allKinds, 1.0); }).what();
    EXPECT_NE(what.find(" in operator()]"), std::string::npos) << what;
    EXPECT_EQ(what.find("std::"), std::string::npos) << what;
    const std::string comparing = caught<StateError>([] {
                                      throw StateError("odd", {"a/file.cpp", 3, "operator<"});
                                  }).what();
    EXPECT_NE(comparing.find("[file.cpp:3 in operator<]"), std::string::npos) << comparing;
}

TEST(Error, TheRankIsThatOfTheMomentOfThrowing) {
    const auto error = [] {
        const WithRank rank(5);
        return caught<Error>([] { throwError(ErrorKind::State, "early"); });
    }();
    EXPECT_EQ(error.rank(), 5);
    EXPECT_NE(std::string(error.what()).find("on rank 5"), std::string::npos);
}

TEST(Error, EveryKindHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (const ErrorKind kind : allKinds) {
        EXPECT_TRUE(errorKindName(kind).ends_with("Error"));
        names.insert(errorKindName(kind));
    }
    EXPECT_EQ(names.size(), allKinds.size());
}

TEST(Error, ThrowErrorThrowsTheTypeOfTheKind) {
    const auto thrownAs = [](ErrorKind kind) -> std::string {
        try {
            throwError(kind, "text");
        } catch (const ArgumentError &) {
            return "ArgumentError";
        } catch (const IndexError &) {
            return "IndexError";
        } catch (const LayoutError &) {
            return "LayoutError";
        } catch (const StateError &) {
            return "StateError";
        } catch (const StaleError &) {
            return "StaleError";
        } catch (const DataError &) {
            return "DataError";
        } catch (const MemoryError &) {
            return "MemoryError";
        } catch (const MpiError &) {
            return "MpiError";
        } catch (const PeerError &) {
            return "PeerError";
        } catch (const NotBuiltError &) {
            return "NotBuiltError";
        }
    };
    for (const ErrorKind kind : allKinds) {
        EXPECT_EQ(thrownAs(kind), errorKindName(kind));
        EXPECT_EQ(caught<Error>([&] { throwError(kind, "text"); }).kind(), kind);
    }
}

TEST(Error, IsAStandardRuntimeError) { EXPECT_THROW(throwError(ErrorKind::Memory, "none left"), std::runtime_error); }

TEST(Check, PassesWithoutFormattingItsMessage) {
    int formatted = 0;
    const auto count = [&] { return ++formatted; };
    EXPECT_NO_THROW(DNDS_CHECK(formatted == 0, StateError, "call {}", count()));
    EXPECT_EQ(formatted, 0);
}

TEST(Check, ThrowsTheGivenTypeWithTheFormattedMessageAndItsOwnPlace) {
    const int line = __LINE__ + 1;
    const auto error = caught<LayoutError>([] { DNDS_CHECK(1 + 1 == 3, LayoutError, "{} is not {}", 2, "three"); });
    EXPECT_EQ(error.message(), "2 is not three");
    EXPECT_EQ(error.where().line, line);
    EXPECT_TRUE(std::string_view(error.where().file).ends_with("ErrorTest.cpp"));
}

TEST(Check, EvaluatesItsConditionOnceAndIsOneStatement) {
    int evaluated = 0;
    if (evaluated == 0)
        DNDS_CHECK(++evaluated > 0, StateError, "not reached");
    else
        FAIL();
    EXPECT_EQ(evaluated, 1);
}

TEST(DebugCheck, ChecksOnlyWhereDebugChecksAreOn) {
    const auto check = [] { DNDS_DEBUG_CHECK(false, IndexError, "element {}", 3); };
#ifdef DNDS_DEBUG_CHECKS
    EXPECT_EQ(caught<IndexError>(check).message(), "element 3");
#else
    EXPECT_NO_THROW(check());
#endif
}

} // namespace
} // namespace DNDS
