// What the parts of the form share.
import { getContext, setContext } from "svelte";

import type { Library } from "../api";
import type { File, New, Path } from "./document";
import type { Node } from "./schema";

export interface Form {
  readonly root: Node; // schema
  readonly file: File;
  readonly library: Library;
  // wrong returns the message of the validator about a path.
  wrong(path: Path): string;
  // names returns what a property can refer to.
  names(property: string): string[];
  set(path: Path, value: New | undefined, plain?: boolean): void;
}

const key = Symbol("form");
export const provide = (form: Form) => setContext(key, form);
export const useForm = () => getContext<Form>(key);
