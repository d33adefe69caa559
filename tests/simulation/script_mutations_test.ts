import { testScenarios } from "./support/mutation_cases.ts";
import { MUTATIONS } from "./support/mutations.ts";

// In a file of its own, so that it runs beside the mutations of code.
testScenarios(MUTATIONS.filter(({ edits }) => edits));
