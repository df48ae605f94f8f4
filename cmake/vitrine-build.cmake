# How Vitrine's targets are compiled: what every user of the headers must share, what only our own code gets, and the
# units that hold kernels for one instruction set.

# Language level, headers, and the one flag on which bit-identical results depend: without -ffp-contract=off compilers
# fuse a*b + c as they please, differently on every instruction set. `scope` is PUBLIC or INTERFACE.
function(vitrine_common_properties target scope)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(
    ${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                       "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  )
  target_compile_options(${target} ${scope} -ffp-contract=off)
  if(VITRINE_STD_THREADS)
    target_compile_definitions(${target} ${scope} VITRINE_STD_THREADS)
  endif()
  if(VITRINE_REVERSED_SUMMATION)
    target_compile_definitions(${target} ${scope} VITRINE_REVERSED_SUMMATION)
  endif()
endfunction()

# Warnings and sanitizers for what is built here; nothing of it reaches a program that links the library.
function(vitrine_own_code target)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wshadow $<$<BOOL:${VITRINE_WARNINGS_AS_ERRORS}>:-Werror>
  )
  if(VITRINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(VITRINE_CCACHE_PROGRAM ccache)
    mark_as_advanced(VITRINE_CCACHE_PROGRAM)
    if(VITRINE_CCACHE_PROGRAM) # units with precompiled headers are kept only if it is told what to pass over
      set(sloppiness CCACHE_SLOPPINESS=pch_defines,time_macros)
      set_target_properties(
        ${target} PROPERTIES CXX_COMPILER_LAUNCHER
                             "${CMAKE_COMMAND};-E;env;${sloppiness};${VITRINE_CCACHE_PROGRAM}"
      )
    endif()
  endif()
endfunction()

# Examples, measuring programs and tests: a hundred units that include the same headers and call a library that has all
# the work in it. So these headers are compiled once, with the library `target` that the programs have in common, and
# taken from it by those that name it; and Release optimises them as -Og does, in less than half of the time that -O3
# takes.
function(vitrine_program target)
  vitrine_own_code(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The first lets ccache see which header it was; the second, in KB, keeps g++ from collecting garbage over and over
    # in the hundred megabytes that come with it.
    # The third is for what g++ says of std::stop_source at -Og.
    target_compile_options(
      ${target} PRIVATE -fpch-preprocess --param=ggc-min-heapsize=524288
                        $<$<CONFIG:Release>:-Wno-maybe-uninitialized>
    )
  endif()
  # A precompiled header serves only units compiled alike, and libraries can be asked to be independent of position.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(ARGC GREATER 1)
    target_precompile_headers(${target} REUSE_FROM ${ARGV1})
  endif()
endfunction()

if(VITRINE_SANITIZE)
  add_compile_options(-fsanitize=${VITRINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${VITRINE_SANITIZE})
endif()

# Kernels for one instruction set each, src/kernels_<isa>.cpp. Only these units see wide instructions; their symbols
# stay hidden, so that no copy of a shared inline function can leave them and reach a processor that lacks the set.
function(vitrine_isa_units)
  # Every kernel is one function into which all else is inlined. What g++ does between functions takes a quarter of the
  # time that these units take and finds nothing. (Not tree-pta, which finds where pointers lead: without it some
  # kernels were up to 1.7 times slower.)
  set(within_functions)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(pass ipa-cp ipa-icf ipa-modref ipa-pure-const ipa-reference ipa-sra)
      list(APPEND within_functions -fno-${pass})
    endforeach()
  endif()
  set(scalar -O1) # plain loops over sixteen lanes: higher levels unroll them all and take minutes
  set(avx2 -mavx2 -mfma -mf16c)
  set(avxvnni ${avx2} -mavxvnni)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(avx512vnni ${avx512} -mavx512vnni)
  set(avx512amx ${avx512vnni} -mamx-tile -mamx-int8)
  # With AddressSanitizer and UBSan a wide unit of unrolled tiles takes minutes to compile. The scalar unit has the same
  # kernels and is watched; the wide ones are held to its bits by the tests.
  if(VITRINE_SANITIZE MATCHES address)
    foreach(isa avx2 avxvnni avx512 avx512vnni avx512amx)
      list(APPEND ${isa} -fno-sanitize=all)
    endforeach()
  endif()
  foreach(isa scalar avx2 avxvnni avx512 avx512vnni avx512amx)
    set_source_files_properties(
      src/kernels_${isa}.cpp PROPERTIES COMPILE_OPTIONS "${${isa}};${within_functions};-fvisibility=hidden"
                                        SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON
    )
  endforeach()
endfunction()
