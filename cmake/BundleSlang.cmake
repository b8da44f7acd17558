# Installs the Slang libraries beside the package, under the names the loader asks for, stripped.
find_program(SPY_STRIP NAMES "${CMAKE_STRIP}" strip)
file(GLOB slang_libraries "${SPY_SLANG_LIBRARY_DIR}/libslang-compiler.so*" "${SPY_SLANG_LIBRARY_DIR}/libslang-gls*.so*"
  "${SPY_SLANG_LIBRARY_DIR}/libslang.so*")
set(bundled)
foreach(library IN LISTS slang_libraries)
  get_filename_component(file "${library}" REALPATH)
  if(file IN_LIST bundled)
    continue()
  endif()
  list(APPEND bundled "${file}")
endforeach()
foreach(file IN LISTS bundled)
  # A versioned library is looked up by its SONAME, which is its file name in Slang's releases; those opened by
  # name at run time (glslang, glsl-module) keep theirs.
  install(FILES "${file}" DESTINATION slangpy/lib
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  get_filename_component(name "${file}" NAME)
  if(SPY_STRIP)
    install(CODE "execute_process(COMMAND \"${SPY_STRIP}\" --strip-unneeded \"\${CMAKE_INSTALL_PREFIX}/slangpy/lib/${name}\")")
  endif()
endforeach()

# Modules that the compiler looks for beside itself (`import slang.neural`).
file(GLOB standard_modules "${SPY_SLANG_LIBRARY_DIR}/slang-standard-module-*")
install(DIRECTORY ${standard_modules} DESTINATION slangpy/lib FILES_MATCHING PATTERN "*.slang-module")
