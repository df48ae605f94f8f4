// A main for other.cpp alone.
const char* other_unit_isa();

int main() { return other_unit_isa()[0] == 0; }
