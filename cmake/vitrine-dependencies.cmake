# The libraries that Vitrine is made of. This file serves our own build and is installed with the package, so that a
# program that links an installed Vitrine looks for the same things in the same way.
#
#   needed by a compiled Vitrine    Threads, PCRE2 and utf8proc (by pkg-config), OpenMP unless VITRINE_STD_THREADS
#   needed by its headers' bodies   xsimd, Eigen and nlohmann-json: to build it, and for vitrine::header_only;
#                                   they form the target vitrine_header_dependencies
include(CMakeFindDependencyMacro)
macro(vitrine_need)
  if(CMAKE_FIND_PACKAGE_NAME)
    find_dependency(${ARGN})
  else()
    find_package(${ARGN} REQUIRED)
  endif()
endmacro()

vitrine_need(Threads)

set(vitrine_openmp "")
if(NOT VITRINE_STD_THREADS)
  vitrine_need(OpenMP COMPONENTS CXX)
  set(vitrine_openmp OpenMP::OpenMP_CXX)
endif()

vitrine_need(PkgConfig)
pkg_check_modules(VITRINE_PCRE2 IMPORTED_TARGET libpcre2-8)
pkg_check_modules(VITRINE_UTF8PROC IMPORTED_TARGET libutf8proc)
foreach(name PCRE2 UTF8PROC)
  if(NOT VITRINE_${name}_FOUND)
    set(message "Vitrine needs ${name}, which pkg-config does not find (Debian: libpcre2-dev, libutf8proc-dev)")
    if(NOT CMAKE_FIND_PACKAGE_NAME)
      message(FATAL_ERROR "${message}")
    endif()
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "${message}")
    return()
  endif()
endforeach()

# xsimd by its include folder only: the CMake target that Debian 12 ships links a library that does not exist.
find_path(VITRINE_XSIMD_INCLUDE_DIR xsimd/xsimd.hpp)
mark_as_advanced(VITRINE_XSIMD_INCLUDE_DIR)
find_package(Eigen3 3.4 QUIET NO_MODULE)
find_package(nlohmann_json 3.10 QUIET)
if(VITRINE_XSIMD_INCLUDE_DIR AND TARGET Eigen3::Eigen AND TARGET nlohmann_json::nlohmann_json)
  set(vitrine_header_dependencies_FOUND TRUE)
  if(NOT TARGET vitrine_header_dependencies)
    add_library(vitrine_header_dependencies INTERFACE IMPORTED)
    target_include_directories(vitrine_header_dependencies SYSTEM INTERFACE ${VITRINE_XSIMD_INCLUDE_DIR})
    target_link_libraries(vitrine_header_dependencies INTERFACE Eigen3::Eigen nlohmann_json::nlohmann_json)
  endif()
else()
  set(vitrine_header_dependencies_FOUND FALSE)
  if(NOT CMAKE_FIND_PACKAGE_NAME)
    message(FATAL_ERROR "Vitrine needs xsimd, Eigen 3.4 and nlohmann-json to be built "
                        "(Debian: libxsimd-dev, libeigen3-dev, nlohmann-json3-dev)")
  endif()
endif()
