package failure

import "strings"

// english replaces the words of statements in Chinese, Japanese and Korean, as programs and
// systems write them, by those of which [Failure.interpret] and [advice] know what they mean.
var english = strings.NewReplacer(
	"显存不足", " out of GPU memory ", "显存溢出", " out of GPU memory ", "内存不足", " out of memory ", "内存溢出", " out of memory ",
	"記憶體不足", " out of memory ", "记忆体不足", " out of memory ", "メモリ不足", " out of memory ", "メモリー不足", " out of memory ",
	"メモリが不足", " out of memory ", "メモリーが不足", " out of memory ", "メモリが足り", " out of memory ", "メモリを確保できません", " cannot allocate memory ",
	"메모리 부족", " out of memory ", "메모리가 부족", " out of memory ",
	"无法分配内存", " cannot allocate memory ", "无法分配显存", " cannot allocate GPU memory ", "内存分配失败", " memory allocation failed ", "显存分配失败", " GPU memory allocation failed ",
	"显存", " GPU memory ", "内存", " memory ", "記憶體", " memory ", "メモリ", " memory ", "메모리", " memory ",
	"错误", " error ", "錯誤", " error ", "报错", " error ", "异常", " exception ", "失败", " failed ", "失敗", " failed ", "エラー", " error ", "오류", " error ", "실패", " failed ",
	"如果", " if ", "若", " if ", "场合", " if ", "場合", " if ", "避免", " avoid ", "防止", " prevent ", "以免", " avoid ", "可能", " may ", "建议", " consider ", "防ぐ", " prevent ", "경우", " if ",
	"尝试分配", " tried to allocate ", "试图分配", " tried to allocate ", "申请", " requested ", "需要", " required ", "必要", " required ",
	"总容量", " total capacity ", "已分配", " already allocated ", "已使用", " in use ", "可用", " free ", "空闲", " free ", "剩余", " free ",
	"，", ", ", "。", ". ", "；", "; ", "：", ": ", "（", " (", "）", ") ", "！", "! ", "？", "? ",
)

// translated is a line of which the words are English as far as they are known.
func translated(line string) string {
	for i := range len(line) {
		if line[i] >= 0x80 {
			return english.Replace(line)
		}
	}
	return line
}

// outInOtherWords states that memory ran out in those languages.
const outInOtherWords = `[显内]存(?:不足|溢出)|[記记][憶忆][體体]不足|メモリー?が?(?:不足|足り)|メモリを確保できません|메모리가? ?부족|无法分配[显内]存|[显内]存分配失败`
