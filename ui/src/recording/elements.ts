// The parts of the page of a recording that are always there.

import { byId } from "../base/dom.ts";
import { Picture } from "./picture.ts";

export const root = byId("view");
export const picture = new Picture(byId("rail"), byId("tooltip"));
