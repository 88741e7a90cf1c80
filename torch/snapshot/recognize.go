package snapshot

import (
	"strandline/torch/pickle"
)

// A recognizer finds out which record a dict is, and sorts its values by key.
type recognizer struct {
	rec   [numKeys]pickle.Value // the values of the record at hand, by key
	shape struct {              // of the record in rec, if all its keys have columns
		kind record
		keys []uint64
	}
	extra   []pickle.Value // keys and values without a column, of the record at hand
	lacks   keySet         // the columns without a key, of the record at hand
	unknown map[string]bool
}

// recognize puts the values of a dict into r.rec by key and the rest into r.extra, and
// returns which record it is. Texts are those that strings are numbered by.
func (r *recognizer) recognize(pairs []pickle.Value, texts []string) record {
	r.extra = r.extra[:0]
	if r.again(pairs) {
		return r.shape.kind
	}
	r.shape.keys = r.shape.keys[:0]
	kind := r.recognizeAny(pairs, texts)
	if kind != rGeneric && len(r.extra) == 0 {
		r.shape.kind = kind
		for i := 0; i < len(pairs); i += 2 {
			r.shape.keys = append(r.shape.keys, pairs[i].N)
		}
	}
	return kind
}

// again sorts a record that has the keys of the one before, as most have: what
// was absent there is absent here.
func (r *recognizer) again(pairs []pickle.Value) bool {
	keys := r.shape.keys
	if len(pairs) != 2*len(keys) || len(keys) == 0 {
		return false
	}
	for i, k := range keys {
		if key := pairs[2*i]; key.Kind != pickle.String || key.N != k {
			return false
		}
		r.rec[k] = pairs[2*i+1]
	}
	return true
}

func (r *recognizer) recognizeAny(pairs []pickle.Value, texts []string) record {
	var mask keySet
	for i := 0; i < len(pairs); i += 2 {
		if k := pairs[i]; k.Kind == pickle.String && k.N < numKeys {
			r.rec[k.N] = pairs[i+1]
			mask |= 1 << k.N
		} else {
			r.extra = append(r.extra, k, pairs[i+1])
		}
	}
	kind := recordOf(mask)
	if kind == rGeneric {
		return kind
	}
	r.lacks = columns[kind] &^ mask
	for missing := r.lacks; missing != 0; missing &= missing - 1 {
		r.rec[missing.first()] = pickle.Value{Kind: absent}
	}
	if rest := mask &^ columns[kind]; rest != 0 {
		for ; rest != 0; rest &= rest - 1 {
			r.keep(rest.first())
		}
	}
	if len(r.extra) > 0 {
		for i := 0; i < len(r.extra); i += 2 {
			if k := r.extra[i]; k.Kind == pickle.String {
				r.know(kind, texts[k.N])
			}
		}
	}
	return kind
}

// absent is the kind of a key that the record does not have.
const absent = pickle.Mark

// knownExtras are keys of PyTorch's that are kept but need no column.
var knownExtras = map[string]bool{
	"forward_frames": true, "internal_metadata": true,
	"fx_node_op": true, "fx_node_name": true, "fx_node_target": true, "fx_node_info": true, "fx_original_trace": true,
}

func (r *recognizer) know(kind record, key string) {
	const maxKeys = 64
	if name := recordNames[kind] + "." + key; !knownExtras[key] && len(r.unknown) < maxKeys {
		r.unknown[name] = true
	}
}

// keep puts the value of a key among those without a column.
func (r *recognizer) keep(k int) {
	r.extra = append(r.extra, pickle.Value{Kind: pickle.String, N: uint64(k)}, r.rec[k])
}
