/** A name as one segment of a path: `~` is `~0`, `/` is `~1`, and `.` and `..` start with `~2`. */
export function segment(name: string): string {
  const written = name.replaceAll("~", "~0").replaceAll("/", "~1");
  return encodeURIComponent(written === "." || written === ".." ? `~2${written.slice(1)}` : written);
}
