// Settings of the allocator as a text, and its options that have a field of their own.

/** The options that have a field of their own. */
export interface Fields {
  expandable: boolean;
  split: string;
  roundup: string;
  collect: string;
  others: string[];
}

/** Takes the text of settings apart. */
export function parts(conf: string): Fields {
  const f: Fields = { expandable: false, split: "", roundup: "", collect: "", others: [] };
  // A comma inside brackets belongs to a list.
  for (const option of conf.match(/[^,[]+(\[[^\]]*\]?)?/g) ?? []) {
    const [name, value] = [option.slice(0, option.indexOf(":")).trim(), option.slice(option.indexOf(":") + 1).trim()];
    if (name === "expandable_segments") f.expandable = value === "True";
    else if (name === "max_split_size_mb") f.split = value;
    else if (name === "roundup_power2_divisions" && /^\d+$/.test(value)) f.roundup = value;
    else if (name === "garbage_collection_threshold") f.collect = value;
    else if (option.trim()) f.others.push(option.trim());
  }
  return f;
}

/** Puts it together again. */
export function conf(f: Fields): string {
  const out = [...f.others];
  if (f.expandable) out.push("expandable_segments:True");
  if (f.split) out.push(`max_split_size_mb:${f.split}`);
  if (f.roundup) out.push(`roundup_power2_divisions:${f.roundup}`);
  if (f.collect) out.push(`garbage_collection_threshold:${f.collect}`);
  return out.join(",");
}
