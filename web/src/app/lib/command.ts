// Commands as the pages show them, for a shell.

export const shellWord = (word: string) =>
  /^[\w./=:,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

// command runs a file.
export function command(study: boolean, engine: string, usual: string, namespace: string, file: string): string {
  const words = ["cnsbench", ...(study ? ["study", "run"] : ["run"])];
  if (engine !== usual) words.push("--engine", engine);
  if (namespace) words.push("--namespace", namespace);
  return [...words, file].map(shellWord).join(" ");
}
