package model

// Layers that keep a state of constant size.

// delta is a Gated DeltaNet layer, as in Qwen3-Next.
func (l *layerBuilder) delta() {
	t, h := l.text, l.hidden
	keyHeads := l.assumed(t, 16, 1, maxHeads, "linear_num_key_heads")
	keyDim := l.assumed(t, 128, 1, maxHeadDim, "linear_key_head_dim")
	heads := l.assumed(t, 32, 1, maxHeads, "linear_num_value_heads")
	dim := l.assumed(t, 128, 1, maxHeadDim, "linear_value_head_dim")
	kernel := l.assumed(t, 4, 1, 1<<10, "linear_conv_kernel_dim")
	k, w := keyHeads*keyDim, heads*dim
	l.add("linear_attn.in_proj_qkv", 2*k+w, h, ByOut, Attention).Fused = "qkvz"
	l.add("linear_attn.in_proj_z", w, h, ByOut, Attention).Fused = "qkvz"
	ba := l.add("linear_attn.in_proj_ba", 2*heads, h, ByOut, Attention)
	if heads < 128 {
		ba.Format = l.full
	}
	l.add("linear_attn.conv1d", 2*k+w, kernel, ByOut, Norm)
	l.vector("linear_attn.dt_bias", 2*heads)
	l.vector("linear_attn.norm", dim)
	l.add("linear_attn.out_proj", h, w, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: (2*k + w) * (kernel - 1), SSM: heads * keyDim * dim, SSMBytes: l.stateBytes(),
		QueryHeads: heads, LinearWidths: 2*k + 2*w, OutputWidth: w}
}

// kimiDelta is Kimi Delta Attention, as in Kimi-Linear.
func (l *layerBuilder) kimiDelta() {
	c := l.text.object("linear_attn_config")
	heads := c.whole(l.heads, 1, maxHeads, "num_heads")
	dim := c.whole(128, 1, maxHeadDim, "head_dim")
	kernel := c.whole(4, 1, 1<<10, "short_conv_kernel_size")
	h, w := l.hidden, heads*dim
	for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
		l.add("self_attn."+name, w, h, ByOut, Attention).Fused = "qkv"
		l.add("self_attn."+name+"_conv1d", w, kernel, ByOut, Norm)
	}
	l.add("self_attn.f_a_proj", dim, h, Whole, Attention)
	l.add("self_attn.f_b_proj", w, dim, ByOut, Attention)
	l.add("self_attn.b_proj", heads, h, ByOut, Attention)
	l.add("self_attn.g_a_proj", dim, h, Whole, Attention)
	l.add("self_attn.g_b_proj", w, dim, ByOut, Attention)
	l.vector("self_attn.vectors", heads+w+dim) // A_log, dt_bias, o_norm
	l.add("self_attn.o_proj", h, w, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: 3 * w * (kernel - 1), SSM: heads * dim * dim, SSMBytes: 4, QueryHeads: heads, LinearWidths: 4 * w, OutputWidth: w}
	if len(c.of) == 0 {
		l.unsure("the config has no shape of the linear attention; Kimi-Linear's is assumed")
	}
}

// mamba is a Mamba-2 layer, as in Nemotron-H.
func (l *layerBuilder) mamba() {
	t, h := l.text, l.hidden
	heads := t.whole(0, 1, maxHeads, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
	dim := l.assumed(t, 64, 1, maxHeadDim, "mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
	state := l.assumed(t, 128, 1, maxHeadDim, "ssm_state_size", "mamba_d_state", "state_size")
	groups := l.assumed(t, 1, 1, maxHeads, "n_groups", "mamba_n_groups", "mamba_ngroups")
	kernel := l.assumed(t, 4, 1, 1<<10, "conv_kernel", "mamba_d_conv")
	if heads == 0 {
		l.missing(t, "mamba_num_heads")
		return
	}
	inner := heads * dim
	conv := inner + 2*groups*state
	l.add("mixer.in_proj", inner+conv+heads, h, ByOut, Attention)
	l.add("mixer.conv1d", conv, kernel+1, ByOut, Norm)
	l.vector("mixer.A_log", 3*heads)
	if t.flag(true, "mamba_rms_norm") {
		l.vector("mixer.norm", inner)
	}
	l.add("mixer.out_proj", h, inner, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: conv * (kernel - 1), SSM: inner * state, SSMBytes: l.stateBytes(), QueryHeads: heads, LinearWidths: inner + conv, OutputWidth: inner}
}

// mamba1 is a layer of the first Mamba, with norms as Jamba has them. Source:
// transformers, models/mamba and models/jamba.
func (l *layerBuilder) mamba1() {
	t, h := l.text, l.hidden
	inner := t.whole(l.assumed(t, 2, 1, 64, "mamba_expand", "expand")*h, 1, maxFFN, "mamba_d_inner")
	state := l.assumed(t, 16, 1, maxHeadDim, "mamba_d_state", "state_size")
	kernel := l.assumed(t, 4, 1, 1<<10, "mamba_d_conv", "conv_kernel")
	rank := ceil(h, 16)
	for _, name := range []string{"mamba_dt_rank", "time_step_rank"} {
		if _, auto := t.of[name].(string); !auto {
			rank = t.whole(rank, 1, maxHidden, name)
		}
	}
	l.add("mixer.in_proj", 2*inner, h, ByOut, Attention)
	l.add("mixer.conv1d", inner, kernel+1, ByOut, Norm)
	l.add("mixer.x_proj", rank+2*state, inner, ByIn, Attention)
	l.add("mixer.dt_proj", inner, rank+1, ByOut, Attention)
	l.add("mixer.A_log", inner, state+1, ByOut, Norm)
	l.add("mixer.out_proj", h, inner, ByIn, Attention)
	if l.kind == "jamba" {
		l.vector("mixer.norms", rank+2*state)
	}
	l.layer.Cache = Cache{Kind: State, Conv: inner * (kernel - 1), SSM: inner * state, SSMBytes: l.stateBytes(), QueryHeads: max(l.heads, 1), LinearWidths: 2 * inner, OutputWidth: inner}
}

// convolution is LFM2's short convolution with two gates. Source: transformers, models/
// lfm2/modeling_lfm2.py, Lfm2ShortConv.
func (l *layerBuilder) convolution() {
	h := l.hidden
	kernel := l.assumed(l.text, 3, 1, 1<<10, "conv_L_cache")
	l.add("conv.in_proj", 3*h, h, ByOut, Attention)
	l.add("conv.conv", h, kernel, ByOut, Norm)
	l.add("conv.out_proj", h, h, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: h * (kernel - 1), SSMBytes: 2, QueryHeads: l.heads, LinearWidths: 3 * h, OutputWidth: h}
}

// lightning is MiniMax-Text-01's linear attention, whose state is in fp32. Source:
// transformers, models/minimax/modeling_minimax.py.
func lightning(l *layerBuilder) {
	h, w := l.hidden, l.heads*l.dim
	l.add("self_attn.qkv_proj", 3*w, h, ByOut, Attention)
	l.add("self_attn.output_gate", w, h, ByOut, Attention)
	l.add("self_attn.out_proj", h, w, ByIn, Attention)
	l.vector("self_attn.norm", w)
	l.layer.Cache = Cache{Kind: State, SSM: w * l.dim, SSMBytes: 4, QueryHeads: l.heads, LinearWidths: 4 * w, OutputWidth: w}
}

func (l *layerBuilder) stateBytes() int64 {
	if l.text.text("mamba_ssm_dtype") == "float32" {
		return 4
	}
	return 2
}
