# Install rules: headers, library, CMake package and pkg-config file. Nothing in them names an absolute folder, so that
# an installed tree may be moved and may have spaces in its name.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vitrine)

install(DIRECTORY include/vitrine DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS vitrine EXPORT vitrine-compiled)
install(EXPORT vitrine-compiled NAMESPACE vitrine:: DESTINATION ${package_dir})
install(TARGETS vitrine_header_only EXPORT vitrine-header-only)
install(EXPORT vitrine-header-only NAMESPACE vitrine:: DESTINATION ${package_dir})

configure_package_config_file(
  cmake/vitrine-config.cmake.in ${PROJECT_BINARY_DIR}/vitrine-config.cmake INSTALL_DESTINATION ${package_dir}
)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vitrine-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vitrine-config.cmake ${PROJECT_BINARY_DIR}/vitrine-config-version.cmake
              cmake/vitrine-dependencies.cmake DESTINATION ${package_dir}
)

# pkg-config: a static library needs its own dependencies named on every link line.
set(private_requires "libpcre2-8 libutf8proc")
set(private_libs "-pthread")
if(NOT VITRINE_STD_THREADS)
  string(APPEND private_libs " ${OpenMP_CXX_FLAGS}")
endif()
if(BUILD_SHARED_LIBS)
  set(pc_requires "Requires.private: ${private_requires}")
  set(pc_libs_private "Libs.private: ${private_libs}")
  set(pc_libs "-lvitrine")
else()
  set(pc_requires "Requires: ${private_requires}")
  set(pc_libs_private "")
  set(pc_libs "-lvitrine ${private_libs}")
endif()
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/vitrine.pc.in ${PROJECT_BINARY_DIR}/vitrine.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vitrine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
