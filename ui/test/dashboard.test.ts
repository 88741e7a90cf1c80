// The dashboard of deploy/ is held against Grafana's own schema, as the types that Grafana
// publishes: a key that it does not know, or a value outside an enumeration, is an error.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";

const panels = "@grafana/schema/dist/esm/raw/composable";
const types = `
import type { Dashboard, DataQuery, FieldConfig, Panel } from "@grafana/schema";
import type * as stat from "${panels}/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as table from "${panels}/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as timeseries from "${panels}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// In JSON a member of an enumeration is its string, and what has a default may be absent.
type Written<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Written<U>[] : T extends object ? { [K in keyof T]?: Written<T[K]> } : T;
type Query = DataQuery & { expr: string; legendFormat?: string; instant?: boolean; range?: boolean; format?: "time_series" | "table" | "heatmap" };
type Fields<Custom> = { defaults: Omit<FieldConfig, "custom"> & { custom: Custom }; overrides: NonNullable<Panel["fieldConfig"]>["overrides"] };
type Kind<Name, Options, Custom> = Omit<Panel, "type" | "options" | "fieldConfig" | "targets"> & { type: Name; options: Options; fieldConfig: Fields<Custom>; targets: Query[] };
type Drawn = Kind<"stat", stat.Options, {}> | Kind<"table", table.Options, table.FieldConfig> | Kind<"timeseries", timeseries.Options, timeseries.FieldConfig>;
export const dashboard: Written<Omit<Dashboard, "panels"> & { panels: Drawn[] }> =
`;

// errors is what the compiler finds in a dashboard, empty if nothing.
const errors = (dashboard: string): string => {
  const folder = mkdtempSync("dashboard-"); // here, where the packages are found
  try {
    writeFileSync(`${folder}/dashboard.ts`, types + dashboard);
    const options = { strict: true, noEmit: true, module: "nodenext", target: "es2022", skipLibCheck: true, types: [] };
    writeFileSync(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: options, files: ["dashboard.ts"] }));
    const run = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "--pretty", "false", "-p", folder], { encoding: "utf8" });
    assert.equal(run.error, undefined);
    return run.status === 0 ? "" : run.stdout + run.stderr;
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test("the dashboard is one of Grafana's", () => {
  const dashboard = readFileSync("../deploy/grafana-dashboard.json", "utf8");
  assert.equal(errors(dashboard), "");
  for (const [right, wrong, found] of [
    ['"gridPos"', '"gridpos"', /'"gridpos"' does not exist/],
    ['"colorMode": "background"', '"colorMode": "behind"', /"behind"' is not assignable/],
    ['"legendFormat"', '"legendformat"', /'"legendformat"' does not exist/],
  ] as const) {
    assert.ok(dashboard.includes(right));
    assert.match(errors(dashboard.replace(right, wrong)), found);
  }
});
