"""A person with a phone, as the tests of the participant's page see one."""

import json
from contextlib import contextmanager

from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from tests import studies
from tests.kit.collectors import TOKEN

WAIT_SECONDS = 20
SENT = "Network.requestWillBeSent"
LEDGER = """
const done = arguments[0];
const request = indexedDB.open("ldpkit");
request.onsuccess = () => {
  const memory = request.result.transaction("ledger").objectStore("ledger").get(0);
  memory.onsuccess = () => {
    request.result.close();
    const { spent, reports } = memory.result;
    done([spent.map(({ question }) => question).sort(), reports]);
  };
};
"""

# What most of these tests ask, and what the person answers.
TEXT = {"text": "How many hours did you work?"}
SMALL = studies.document(
    {**studies.NUMBER, **TEXT}, studies.YES_NO, title="Hours & <b>habits</b>", purpose="To <i>see</i>."
)
MENU = {**studies.CHOICE, "id": "month", "choices": [f"month {number}" for number in range(12)]}
EVERY_KIND = studies.document(*studies.ALL, MENU)
ANSWERS = {"hours": "3.5", "ever": "yes"}


def _button(buttons, choice):
    """The button with that label; a yes or no goes by its value, whatever the language."""
    labels = [button.find_element(By.XPATH, "..").get_property("textContent").strip() for button in buttons]
    values = [button.get_attribute("value") for button in buttons]
    return buttons[(labels if choice in labels else values).index(choice)]


def stored_at(server, study_id):
    return list(fetch_reports(Client(server.url, TOKEN), study_id))


class Participant:
    """A browser on a study's page, in the tab or frame that the browser is in."""

    def __init__(self, browser, server, study):
        self.browser = browser
        self.server = server
        self.study = study

    def open(self, ticket=""):
        fragment = f"#ticket={ticket}" if ticket else ""
        # From another page: what differs behind the # alone is not loaded again.
        self.browser.get("about:blank")
        self.browser.get(f"{self.server.url}/s/{self.study.id}{fragment}")
        self.until("ask")
        return self

    @contextmanager
    def another_tab(self):
        """The same page in another tab, which is in front until it is closed."""
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        yield Participant(self.browser, self.server, self.study).open()
        self.browser.close()
        self.browser.switch_to.window(first)

    def until(self, *headings):
        self.wait_until(lambda: any(self.find(f"#{heading}").is_displayed() for heading in headings))

    def until_says(self, words):
        self.wait_until(lambda: words in self.text)

    def wait_until(self, condition):
        # After a click on a link, what was found may be of the page before.
        wait = WebDriverWait(self.browser, WAIT_SECONDS, 0.02, [StaleElementReferenceException])
        try:
            wait.until(lambda _: condition())
        except TimeoutException as error:
            raise TimeoutException(self.text) from error

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.find(selector).click()

    @property
    def text(self):
        return str(self.find("main").text)

    @property
    def body(self):
        return str(self.find("#body").get_property("textContent"))

    def answer(self, **answers):
        self.fill(**answers)
        self.ask_for_report()

    def ask_for_report(self):
        self.click("#answers button[type=submit]")
        self.wait_until(lambda: self.find("#problem").is_displayed() or not self.find("#ask").is_displayed())
        if self.find("#confirm").is_displayed():
            self.click("#confirm button")

    def withdraw(self):
        self.click("details:has(> #withdraw) > summary")
        self.click("#withdraw")

    def fill(self, **answers):
        for name, value in answers.items():
            found = self.browser.find_elements(By.NAME, name)
            if found[0].tag_name == "select" or found[0].get_attribute("type") == "text":
                found[0].send_keys(value)
            else:
                _button(found, value).click()

    def send(self):
        self.click("#agree")
        self.click("#consent button")

    def ledger(self):
        return tuple(self.browser.execute_async_script(LEDGER))

    def stored(self):
        return stored_at(self.server, self.study.id)

    def requests(self):
        """(method, URL) of what the browser asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        sent = [found["params"]["request"] for found in messages if found["method"] == SENT]
        return [(request["method"], request["url"]) for request in sent]
