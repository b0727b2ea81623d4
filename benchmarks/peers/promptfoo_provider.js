// The model of promptfoo's run: answers what the sample says it answers.
module.exports = class {
  id() {
    return "answered";
  }

  async callApi(prompt, context) {
    return { output: context.vars.answer };
  }
};
