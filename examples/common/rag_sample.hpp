// A few documents and questions, for a first try without a folder of one's own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace example {

inline const std::vector<std::pair<std::string, std::string>> sample_documents = {
    {"harbour.txt",
     "The harbour of Port Ellery was built in 1841. Its north pier is 312 metres long and carries the lighthouse; the "
     "south pier is shorter and belongs to the fishing boats. Large ships need a pilot from the bell buoy on.\n\n"
     "The lighthouse stands at the end of the north pier. Its lamp was changed from oil to electricity in 1927 and is "
     "seen for 18 nautical miles. It shows two white flashes every ten seconds."},
    {"ferry.txt",
     "The ferry to Saint Brannock leaves at seven, at noon and at half past five. A crossing takes fifty minutes; in "
     "winter the noon ferry does not sail. Dogs travel free of charge, bicycles cost two crowns.\n\n"
     "Tickets for the ferry are sold in the red house beside the south pier. In storms of force nine and more the "
     "ferry "
     "stays in the harbour, and tickets are paid back."},
    {"notice.txt",
     "Notice: tickets for the ferry are sold in the red house beside the south pier. In storms of force nine and more "
     "the ferry stays in the harbour, and tickets are paid back!"},
    {"museum.txt",
     "The museum of the lifeboat keeps the boat Marigold, which saved 94 people between 1903 and 1939. It opens from "
     "ten to four, but not on Mondays. Children under twelve pay nothing.\n\n"
     "In the garden of the museum stands the bell of the buoy of 1866, which was lost in the storm of 1911 and found "
     "by divers sixty years later."},
    {"market.txt",
     "On Saturdays there is a market on the square before the church. Fish is sold from six in the morning on, "
     "straight "
     "from the boats; bread, cheese and apples from eight on. The market ends at noon with the bell of the church."}};

inline const std::vector<std::string> sample_questions = {
    "How long is the north pier?",           "When does the ferry to Saint Brannock leave?",
    "Where are tickets for the ferry sold?", "How many people did the lifeboat Marigold save?",
    "How far is the lighthouse seen?",       "When is fish sold on the market?"};

}  // namespace example
